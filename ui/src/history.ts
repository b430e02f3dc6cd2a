// Messages as the gateway stores them, made lines of a conversation.
import type { Outlook } from "./outlook";
import { describe, NO_REPLY, STOPPED, TIME_LIMIT, type CallState, type Line } from "./line";
import { isSilent, spoken } from "./silent";

interface StoredBlock {
  type?: string;
  id?: string;
  text?: string;
  name?: string;
  arguments?: unknown;
}

export interface StoredMessage {
  role?: string;
  content?: string | StoredBlock[];
  provider?: string;
  timestamp?: number;
  stopReason?: string;
  errorMessage?: string;
  /** What people are told of `errorMessage`, where that is something else. */
  errorText?: string;
  toolCallId?: string;
  isError?: boolean;
  details?: { status?: unknown };
  /** For an answer of the gateway itself: the command that it answers. */
  command?: string;
}

/** Provider of what the gateway says in the assistant's name. */
const GATEWAY = "openclaw";

/** Stands for pictures that were sent without a word. */
const PICTURE = "(picture)";

/** How the result of a call begins that a stop cut off. */
const CUT_OFF = "[openclaw] The run was stopped";

/** What the reason of an aborted answer says when it was the clock that stopped it. */
const TIMED_OUT = "time limit";

/**
 * Where a turn stands after a message. One that a person stops before the model said anything ends with what it has; all
 * other ends leave an answer in the history.
 */
type Turn = "over" | "asked" | "working" | "stopped";

/** The lines of a history, which read like those that were there while it happened. */
export function storedLines(history: readonly unknown[], outlook: Outlook): Line[] {
  const messages = history as StoredMessage[];
  const calling = outlook === "underWay" ? messages.findLastIndex(isAnswer) : -1;
  const results = new Map<string | undefined, StoredMessage>(
    messages.filter((message) => message.role === "toolResult").map((message) => [message.toolCallId, message]),
  );
  const lines: Line[] = [];
  let turn: Turn = "over";
  messages.forEach((message, index) => {
    const id = `h${index}`;
    const isNext = message.role === "user" && (turn === "asked" || turn === "stopped");
    if (isNext) lines.push({ id: `${id}s`, kind: "note", text: STOPPED });
    if (!wasTriedAgain(message, messages.slice(index + 1))) lines.push(...linesOf(message, id, results, index === calling ? "running" : undefined));
    turn = after(turn, message);
  });
  if (outlook === "stopped") lines.push({ id: "end", kind: "note", text: STOPPED });
  if (outlook === "unanswered") lines.push({ id: "end", kind: "note", text: NO_REPLY });
  return lines;
}

/** Where the last turn of a history stands. */
export function lastTurn(messages: readonly StoredMessage[]): Turn {
  return messages.reduce(after, "over");
}

function after(turn: Turn, message: StoredMessage): Turn {
  switch (message.role) {
    case "user":
      // What is said while tools run may be for the run under way: it is no turn of its own.
      return turn === "working" ? turn : "asked";
    case "toolResult":
      return turn === "stopped" || messageText(message).startsWith(CUT_OFF) ? "stopped" : "working";
    case "assistant":
      if (!isAnswer(message)) return turn;
      return message.stopReason === "toolUse" ? "working" : "over";
    default:
      return turn;
  }
}

/** Unlike what the gateway says by itself, such as the answer to a command, while a turn may go on. */
function isAnswer(message: StoredMessage): boolean {
  return message.role === "assistant" && !(message.provider === GATEWAY && message.stopReason === "stop");
}

/** The text of a call's result, where a history has it. */
export function resultOf(history: readonly unknown[], call: string | undefined): string | undefined {
  const isIt = (message: StoredMessage) => message.role === "toolResult" && message.toolCallId === call;
  const found = (history as StoredMessage[]).findLast(isIt);
  return found && messageText(found);
}

function endOf(result: StoredMessage): CallState {
  return hasFailed(result) ? "failed" : "done";
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

function linesOf(
  message: StoredMessage,
  id: string,
  results: ReadonlyMap<string | undefined, StoredMessage>,
  withoutResult: CallState | undefined,
): Line[] {
  const text = messageText(message);
  if (message.role === "user") return text || hasPicture(message) ? [{ id, kind: "user", text: text || PICTURE, ...saidAt(message) }] : [];
  if (message.role === "system") return [{ id, kind: "note", text }];
  if (message.role !== "assistant") return [];
  const said = isSilent(text) ? "" : spoken(text);
  const time = message.timestamp;
  const lines: Line[] = [];
  // The command that the gateway answers is no message of its own.
  if (message.command) lines.push({ id: `${id}q`, kind: "user", text: message.command, time });
  if (said) lines.push({ id, kind: "assistant", text: said, time });
  blocks(message)
    .filter((block) => block.type === "toolCall")
    .forEach((block, at) => {
      const result = results.get(block.id);
      const call = { id: block.id, state: result ? endOf(result) : withoutResult, args: block.arguments, result: result && messageText(result) };
      lines.push({ id: `${id}t${at}`, kind: "tool", text: describe(block.name, block.arguments), call });
    });
  if (message.stopReason === "aborted") {
    const isTimeout = message.errorMessage?.includes(TIMED_OUT);
    lines.push({ id: `${id}a`, kind: "note", text: isTimeout ? TIME_LIMIT : STOPPED });
  } else if (message.stopReason === "error") {
    const text = message.errorText ?? message.errorMessage ?? "The model failed.";
    lines.push({ id: `${id}e`, kind: "error", text });
  } else if (lines.length === 0) {
    lines.push({ id, kind: "note", text: NO_REPLY });
  }
  return lines;
}

function saidAt(message: StoredMessage): { at?: number; time?: number } {
  return message.timestamp === undefined ? {} : { at: message.timestamp, time: message.timestamp };
}

function hasPicture(message: StoredMessage): boolean {
  return blocks(message).some((block) => block.type === "image");
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
