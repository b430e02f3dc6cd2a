// Markdown to HTML. The result is a model's words: `safe_html.ts` cleans it before it is inserted.
import { Marked } from "marked";

/** Tags are no part of this Markdown: `Vec<String>` or `<your-name>` is text that people are to read, not an element. */
const NO_TAGS = { html: () => undefined, tag: () => undefined };

const marked = new Marked({ gfm: true, breaks: true }, { tokenizer: NO_TAGS });

export function toHtml(markdown: string): string {
  return marked.parse(markdown, { async: false });
}
