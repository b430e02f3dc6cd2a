// The conversation as a value: history, the answer that is arriving, tool calls. Every change is a pure function.
import type { AgentEvent, ChatEvent, ChatHistoryResult } from "./protocol";

export interface Line {
  id: string;
  kind: "user" | "assistant" | "tool" | "note" | "error";
  text: string;
  /** For tool lines: whether the call is still running. */
  running?: boolean;
}

export interface Conversation {
  lines: readonly Line[];
  /** Run that is answering now. */
  run: string | undefined;
  /** Text of the assistant message that is arriving. */
  arriving: string;
}

export const EMPTY: Conversation = { lines: [], run: undefined, arriving: "" };

interface StoredBlock {
  type?: string;
  text?: string;
  name?: string;
  arguments?: unknown;
}

interface StoredMessage {
  role?: string;
  content?: string | StoredBlock[];
  stopReason?: string;
  errorMessage?: string;
}

export function fromHistory(history: ChatHistoryResult): Conversation {
  const lines = (history.messages as StoredMessage[]).flatMap((message, index) => storedLines(message, `h${index}`));
  return { lines, run: undefined, arriving: "" };
}

function storedLines(message: StoredMessage, id: string): Line[] {
  const blocks: StoredBlock[] =
    typeof message.content === "string" ? [{ type: "text", text: message.content }] : (message.content ?? []);
  const text = blocks
    .filter((block) => block.type === "text")
    .map((block) => block.text ?? "")
    .join("\n");
  if (message.role === "user") return text ? [{ id, kind: "user", text }] : [];
  if (message.role === "system") return [{ id, kind: "note", text }];
  if (message.role !== "assistant") return [];
  const lines: Line[] = text ? [{ id, kind: "assistant", text }] : [];
  blocks
    .filter((block) => block.type === "toolCall")
    .forEach((block, call) => lines.push({ id: `${id}t${call}`, kind: "tool", text: describe(block.name, block.arguments) }));
  if (message.stopReason === "aborted") lines.push({ id: `${id}a`, kind: "note", text: "Stopped." });
  if (message.stopReason === "error") lines.push({ id: `${id}e`, kind: "error", text: message.errorMessage ?? "The model failed." });
  return lines;
}

export function sent(conversation: Conversation, run: string, text: string): Conversation {
  return { ...add(conversation, { id: `u-${run}`, kind: "user", text }), run, arriving: "" };
}

export function failed(conversation: Conversation, run: string, message: string): Conversation {
  const next = add(conversation, { id: `e-${run}`, kind: "error", text: message });
  return conversation.run === run ? { ...next, run: undefined, arriving: "" } : next;
}

export function onChat(conversation: Conversation, event: ChatEvent): Conversation {
  const text = messageText(event.message);
  switch (event.state) {
    case "delta":
      return { ...conversation, run: event.runId, arriving: text };
    case "final":
      return settle(conversation, event.runId, text ? { id: `a-${event.runId}-${event.seq}`, kind: "assistant", text } : undefined);
    case "aborted": {
      const kept = conversation.arriving
        ? add(conversation, { id: `p-${event.runId}`, kind: "assistant", text: conversation.arriving })
        : conversation;
      return settle(kept, event.runId, { id: `x-${event.runId}`, kind: "note", text: "Stopped." });
    }
    case "error":
      return settle(conversation, event.runId, {
        id: `e-${event.runId}`,
        kind: "error",
        text: event.errorMessage ?? "The run failed.",
      });
  }
}

export function onAgent(conversation: Conversation, event: AgentEvent): Conversation {
  if (event.stream !== "tool") return conversation;
  const data = event.data as { phase?: string; name?: string; toolCallId?: string; args?: unknown };
  const id = `t-${event.runId}-${data.toolCallId}`;
  if (data.phase === "start") {
    // What the model said before the call is a message of its own: keep it above the call.
    const before = conversation.arriving
      ? add(conversation, { id: `b-${id}`, kind: "assistant", text: conversation.arriving })
      : conversation;
    return add({ ...before, arriving: "" }, { id, kind: "tool", text: describe(data.name, data.args), running: true });
  }
  if (data.phase !== "result") return conversation;
  const lines = conversation.lines.map((line) => (line.id === id ? { ...line, running: false } : line));
  return { ...conversation, lines };
}

function settle(conversation: Conversation, run: string, line: Line | undefined): Conversation {
  const next = line ? add(conversation, line) : conversation;
  return conversation.run === run || conversation.run === undefined ? { ...next, run: undefined, arriving: "" } : next;
}

function add(conversation: Conversation, line: Line): Conversation {
  if (conversation.lines.some((known) => known.id === line.id)) return conversation;
  return { ...conversation, lines: [...conversation.lines, line] };
}

function messageText(message: unknown): string {
  const content = (message as StoredMessage | undefined)?.content;
  if (typeof content === "string") return content;
  return (content ?? []).map((block) => block.text ?? "").join("\n");
}

function describe(name: string | undefined, args: unknown): string {
  const fields = Object.values((args ?? {}) as Record<string, unknown>);
  const first = fields.find((value) => typeof value === "string");
  return first === undefined ? (name ?? "tool") : `${name ?? "tool"}: ${String(first)}`;
}
