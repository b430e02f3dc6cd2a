import assert from "node:assert/strict";
import test from "node:test";
import { toHtml } from "../src/markdown";

test("shows angle brackets as text and still reads Markdown", () => {
  const rows: [markdown: string, html: string][] = [
    ["Use Vec<String> for <your-name>.", "<p>Use Vec&lt;String&gt; for &lt;your-name&gt;.</p>"],
    ["if a<b and c>d", "<p>if a&lt;b and c&gt;d</p>"],
    ["/model <provider>/<model>", "<p>/model &lt;provider&gt;/&lt;model&gt;</p>"],
    ["<div>**bold**</div>", "<p>&lt;div&gt;<strong>bold</strong>&lt;/div&gt;</p>"],
    ["one\n<your-name>\ntwo", "<p>one<br>&lt;your-name&gt;<br>two</p>"],
    ["<!-- remark --> said", "<p>&lt;!-- remark --&gt; said</p>"],
    ["<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"],
    ["`Vec<u8>` &lt;x&gt;", "<p><code>Vec&lt;u8&gt;</code> &lt;x&gt;</p>"],
    ["```\nVec<u8>\n```", "<pre><code>Vec&lt;u8&gt;\n</code></pre>"],
    ["<https://docs.rs/>", '<p><a href="https://docs.rs/">https://docs.rs/</a></p>'],
    ["> quoted <b>", "<blockquote>\n<p>quoted &lt;b&gt;</p>\n</blockquote>"],
  ];
  for (const [markdown, html] of rows) assert.deepEqual(toHtml(markdown).trim(), html, markdown);
});
