// The conversation as one sees and hears it: a log whose new lines are announced, the arriving answer only when it is whole.
import { useMemo, useState } from "preact/hooks";
import { isBusy, type Conversation } from "./conversation";
import { useFollowedEnd } from "./follow_end";
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

interface LinesProps {
  conversation: Conversation;
  /** Asks for what a call of a tool has answered. */
  reveal(line: Line): void;
}

export function Lines({ conversation, reveal }: LinesProps) {
  const own = conversation.lines.findLast((line) => line.isOwn)?.id;
  const end = useFollowedEnd(conversation, own);
  const calling = conversation.lines.some((line) => line.call?.state === "running");
  const waiting = isBusy(conversation) && !calling;
  const arriving = conversation.arriving?.text;
  return (
    <section class="lines" role="log" aria-label="Conversation" ref={end.ref} onScroll={end.onScroll}>
      {conversation.lines.map((line) => (
        <LineView key={line.id} line={line} reveal={reveal} />
      ))}
      {(waiting || arriving) && (
        <div class="arriving" aria-live="off" aria-busy="true">
          <LineView line={{ id: "arriving", kind: "assistant", text: arriving || "…" }} reveal={reveal} />
        </div>
      )}
      {conversation.notice && (
        <p class="notice" role="status">
          {conversation.notice.text}
        </p>
      )}
      {!end.isAtEnd && (
        <button type="button" class="to-end" aria-label="To the end of the conversation" title="To the end" onClick={end.toEnd}>
          ↓
        </button>
      )}
    </section>
  );
}

function LineView({ line, reveal }: { line: Line; reveal(line: Line): void }) {
  const named = { "aria-label": SPEAKER[line.kind], "data-id": line.id, ...timeOf(line) };
  switch (line.kind) {
    case "assistant":
      return <Answer line={line} named={named} />;
    case "tool":
      return <Call line={line} named={named} reveal={reveal} />;
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
          {line.pictures?.map((address) => <img key={address} src={address} alt="" />)}
        </article>
      );
  }
}

type Named = Record<string, string | undefined>;

function Answer({ line, named }: { line: Line; named: Named }) {
  const html = useMemo(() => safeHtml(toHtml(line.text)), [line.text]);
  return (
    <article {...named} class="assistant">
      <div class="words" dangerouslySetInnerHTML={{ __html: html }} />
      {line.id !== "arriving" && <CopyButton text={line.text} />}
    </article>
  );
}

/** Without a word in it: what stands in the conversation is what was said. */
function CopyButton({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    setCopied(await copyText(text));
    window.setTimeout(() => setCopied(false), 2000);
  };
  const label = copied ? "Copied" : "Copy";
  return <button type="button" class={`copy ${copied ? "copied" : ""}`} aria-label={label} title={label} onClick={() => void copy()} />;
}

/** `navigator.clipboard` exists in secure contexts only; a page on the local network is none. */
async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

function Call({ line, named, reveal }: { line: Line; named: Named; reveal(line: Line): void }) {
  const [open, setOpen] = useState(false);
  const { call } = line;
  const onToggle = (event: Event) => {
    const { open } = event.currentTarget as HTMLDetailsElement;
    setOpen(open);
    if (open && call?.result === undefined && call?.state !== "running") reveal(line);
  };
  return (
    <article {...named} class="tool" title={line.text}>
      <details onToggle={onToggle}>
        <summary>
          <span class="call">{line.text}</span>
          {call?.state && <span class={`state ${call.state}`}>{CALL_STATE[call.state]}</span>}
        </summary>
        {open && (
          <>
            {call?.args !== undefined && <pre>{JSON.stringify(call.args, null, 2)}</pre>}
            <pre>{call?.result ?? (call?.state === "running" ? "No result yet." : "The result is not in the conversation.")}</pre>
          </>
        )}
      </details>
    </article>
  );
}

/** The time of a line, on a clock; with the day where it is another. The page shows it by its style, so that it is no part of the text. */
function timeOf({ time }: Line): { "data-time"?: string } {
  if (time === undefined) return {};
  const at = new Date(time);
  const isToday = at.toDateString() === new Date().toDateString();
  const clock = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return { "data-time": isToday ? clock : `${at.toLocaleDateString()} ${clock}` };
}
