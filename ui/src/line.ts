// One line of a conversation.

export interface Line {
  id: string;
  kind: "user" | "assistant" | "tool" | "note" | "error";
  text: string;
  /** The run it came with; lines of the history have none. */
  run?: string;
  /** For what people said: when the gateway accepted it, in Unix milliseconds. */
  at?: number;
  /** True for what was said on this page. */
  isOwn?: boolean;
  /** When it was said, in Unix milliseconds, as far as that is known. For people to read. */
  time?: number | undefined;
  /** For what people said: addresses of the pictures that go with it. */
  pictures?: readonly string[];
  /** For tool lines: which call, and where it stands if that is known. */
  call?: Call;
}

export interface Call {
  id: string | undefined;
  state: CallState | undefined;
  /** What the tool was given. */
  args?: unknown;
  /** What the tool answered, as far as the page has been told. */
  result?: string | undefined;
}

export type CallState = "running" | "done" | "failed";

/** Arguments that tell what a call is about, in this order; else the first text does. */
const TELLING = ["command", "path", "file_path", "query", "url"];

export function describe(name = "tool", args: unknown): string {
  const fields = (args ?? {}) as Record<string, unknown>;
  const told = [...TELLING.map((key) => fields[key]), ...Object.values(fields)].find((value) => typeof value === "string");
  return told === undefined ? name : `${name}: ${String(told)}`;
}

/** What the page says of runs that end without an answer, the same live and from the history. */
export const STOPPED = "Stopped.";
export const TIME_LIMIT = "Stopped at its time limit.";
export const NO_REPLY = "No reply.";
