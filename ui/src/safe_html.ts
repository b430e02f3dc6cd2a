// HTML that is safe to insert: a model's text is not trusted.
import DOMPurify from "dompurify";

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
});

export function safeHtml(html: string): string {
  // Images are not loaded: their URLs could carry the conversation to a stranger's server.
  return DOMPurify.sanitize(html, { FORBID_TAGS: ["style", "form", "input", "button", "img"], FORBID_ATTR: ["style"] });
}
