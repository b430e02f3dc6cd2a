// The conversation as one sees and hears it: a log whose new lines are announced, the arriving answer only when it is whole.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { isBusy, type Conversation } from "./conversation";
import type { Line } from "./line";
import { toHtml } from "./markdown";
import { safeHtml } from "./safe_html";

/** Who speaks, for those who don't see sides and colours. */
const SPEAKER: Record<Line["kind"], string> = {
  user: "You",
  assistant: "Assistant",
  tool: "Tool call",
  note: "Note",
  error: "Error",
};

const CALL_STATE = { running: "running…", done: "done", failed: "failed" };

export function Lines({ conversation }: { conversation: Conversation }) {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => end.current?.scrollIntoView({ block: "end" }), [conversation]);
  const calling = conversation.lines.some((line) => line.call?.state === "running");
  const waiting = isBusy(conversation) && !calling;
  const arriving = conversation.arriving?.text;
  return (
    <section class="lines" role="log" aria-label="Conversation">
      {conversation.lines.map((line) => (
        <LineView key={line.id} line={line} />
      ))}
      {(waiting || arriving) && (
        <div class="arriving" aria-live="off" aria-busy="true">
          <LineView line={{ id: "arriving", kind: "assistant", text: arriving || "…" }} />
        </div>
      )}
      <div ref={end} />
    </section>
  );
}

function LineView({ line }: { line: Line }) {
  const html = useMemo(() => (line.kind === "assistant" ? safeHtml(toHtml(line.text)) : ""), [line.kind, line.text]);
  const named = { "aria-label": SPEAKER[line.kind], "data-id": line.id };
  switch (line.kind) {
    case "assistant":
      return <article {...named} class="assistant" dangerouslySetInnerHTML={{ __html: html }} />;
    case "tool":
      return (
        <article {...named} class="tool" title={line.text}>
          <span class="call">{line.text}</span>
          {line.call?.state && <span class={`state ${line.call.state}`}>{CALL_STATE[line.call.state]}</span>}
        </article>
      );
    case "error":
      // What fails now interrupts; what failed long ago is read in its turn.
      return (
        <article {...named} class="error" role={line.run ? "alert" : undefined}>
          {line.text}
        </article>
      );
    case "user":
    case "note":
      return (
        <article {...named} class={line.kind}>
          {line.text}
        </article>
      );
  }
}
