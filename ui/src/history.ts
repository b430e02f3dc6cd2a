// Messages as the gateway stores them, made lines of a conversation.
import { describe, type CallState, type Line } from "./line";

interface StoredBlock {
  type?: string;
  id?: string;
  text?: string;
  name?: string;
  arguments?: unknown;
}

interface StoredMessage {
  role?: string;
  content?: string | StoredBlock[];
  provider?: string;
  stopReason?: string;
  errorMessage?: string;
  /** What people are told of `errorMessage`, where that is something else. */
  errorText?: string;
  toolCallId?: string;
  isError?: boolean;
  details?: { status?: unknown };
}

/** Provider of what the gateway says in the assistant's name. */
const GATEWAY = "openclaw";

/** The lines of a history, which read like those that were there while it happened. */
export function storedLines(history: readonly unknown[]): Line[] {
  const messages = history as StoredMessage[];
  const results = new Map<string | undefined, CallState>(
    messages
      .filter((message) => message.role === "toolResult")
      .map((message) => [message.toolCallId, hasFailed(message) ? "failed" : "done"]),
  );
  return messages.flatMap((message, index) =>
    wasTriedAgain(message, messages.slice(index + 1)) ? [] : linesOf(message, `h${index}`, results),
  );
}

/** Whether a tool failed, as the gateway's events tell it: most failures are results that say so. */
function hasFailed(result: StoredMessage): boolean {
  const status = result.details?.status;
  return result.isError === true || status === "error" || status === "timeout";
}

/** Whether a failed call was followed by another attempt: of those nothing was seen while they happened. */
function wasTriedAgain(message: StoredMessage, later: StoredMessage[]): boolean {
  if (message.stopReason !== "error") return false;
  const next = later.find(({ role, provider }) => role === "user" || (role === "assistant" && provider !== GATEWAY));
  return next?.role === "assistant";
}

function linesOf(message: StoredMessage, id: string, results: ReadonlyMap<string | undefined, CallState>): Line[] {
  const text = messageText(message);
  if (message.role === "user") return text ? [{ id, kind: "user", text }] : [];
  if (message.role === "system") return [{ id, kind: "note", text }];
  if (message.role !== "assistant") return [];
  const lines: Line[] = text ? [{ id, kind: "assistant", text }] : [];
  blocks(message)
    .filter((block) => block.type === "toolCall")
    .forEach((block, at) => {
      const call = { id: block.id, state: results.get(block.id) };
      lines.push({ id: `${id}t${at}`, kind: "tool", text: describe(block.name, block.arguments), call });
    });
  if (message.stopReason === "aborted") lines.push({ id: `${id}a`, kind: "note", text: "Stopped." });
  if (message.stopReason === "error") {
    const text = message.errorText ?? message.errorMessage ?? "The model failed.";
    lines.push({ id: `${id}e`, kind: "error", text });
  }
  return lines;
}

export function messageText(message: unknown): string {
  return blocks(message as StoredMessage | undefined)
    .filter((block) => block.type === "text")
    .map((block) => block.text ?? "")
    .join("\n");
}

function blocks(message: StoredMessage | undefined): StoredBlock[] {
  const content = message?.content ?? [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
