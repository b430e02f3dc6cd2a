// Markdown to HTML that is safe to insert: a model's text is not trusted.
import DOMPurify from "dompurify";
import { marked } from "marked";

marked.setOptions({ gfm: true, breaks: true });

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
});

export function toHtml(markdown: string): string {
  const html = marked.parse(markdown, { async: false });
  // Images are not loaded: their URLs could carry the conversation to a stranger's server.
  return DOMPurify.sanitize(html, { FORBID_TAGS: ["style", "form", "input", "button", "img"], FORBID_ATTR: ["style"] });
}
