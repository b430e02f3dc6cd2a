// The conversation as a value: history, the answer that is arriving, tool calls. Every change is a pure function.
import { messageText, storedLines } from "./history";
import { describe, NO_REPLY, STOPPED, TIME_LIMIT, type Line } from "./line";
import type { Outlook } from "./outlook";
import { withQuestions } from "./questions";
import type { AgentEvent, ChatAborted, ChatEvent, ChatHistoryResult } from "./protocol";

/** Where a run stands that has not ended: a message of this page may have to wait for its turn. */
type Progress = "sent" | "begun";

export interface Conversation {
  /** The transcript it is in; a conversation that starts anew gets another one. */
  session: string | undefined;
  lines: readonly Line[];
  /** The runs that have not ended, as far as this page knows of them. */
  runs: ReadonlyMap<string, Progress>;
  /** The assistant message that is arriving. */
  arriving: { run: string; text: string } | undefined;
  /** Why nothing arrives for now: a model that does not answer, and what is tried. */
  notice: { run: string; text: string } | undefined;
  /** Ids of lines that the history replaces when it comes. */
  stale: ReadonlySet<string>;
}

export const EMPTY: Conversation = {
  session: undefined,
  lines: [],
  runs: new Map(),
  arriving: undefined,
  notice: undefined,
  stale: new Set(),
};

/** Stands for the run that the history shows under way. Which one it is, its next event tells. */
const UNNAMED = "";

const NOTHING_TO_STOP = "There was nothing to stop.";
const CANNOT_STOP = "Not stopped: a program asked for this answer, and only that program can stop it.";

export function isBusy(conversation: Conversation): boolean {
  return conversation.runs.size > 0;
}

/** The history is asked for: it replaces what is there, except what is said on this page until it comes. */
export function loading(conversation: Conversation): Conversation {
  const stale = new Set(conversation.lines.map((line) => line.id));
  return { ...conversation, runs: new Map(), arriving: undefined, notice: undefined, stale };
}

export function loaded(conversation: Conversation, history: ChatHistoryResult, outlook: Outlook): Conversation {
  const fresh = conversation.lines.filter((line) => !conversation.stale.has(line.id));
  const asked = new Set(fresh.filter((line) => line.kind === "user").map((line) => line.run));
  const lines = [...storedLines(history.messages, outlook), ...fresh.filter((line) => asked.has(line.run))];
  const next = { ...conversation, session: history.sessionId ?? undefined, lines };
  // A session has one run at a time: one that was seen at work by now is the one.
  const isNamed = [...next.runs.values()].includes("begun");
  return outlook === "underWay" && !isNamed ? begin(next, UNNAMED) : next;
}

/**
 * A run has begun: what it answers is in the history by now, also when another client asked. In a new session, the
 * conversation begins with what was said for this run.
 */
export function onStart(conversation: Conversation, history: ChatHistoryResult, run: string, startedAt: number): Conversation {
  const next = inSession(conversation, history.sessionId ?? undefined, run);
  return { ...next, lines: withQuestions(next.lines, history.messages, run, startedAt) };
}

function inSession(conversation: Conversation, session: string | undefined, run: string): Conversation {
  if (session === undefined || session === conversation.session) return conversation;
  if (conversation.session === undefined) return { ...conversation, session };
  const first = conversation.lines.findIndex((line) => line.run === run);
  return { ...conversation, session, lines: first < 0 ? [] : conversation.lines.slice(first) };
}

/** A message of this page. It touches no answer that is arriving: that goes on. */
export function sent(conversation: Conversation, run: string, text: string, pictures: readonly string[] = []): Conversation {
  const line: Line = { id: `u-${run}`, kind: "user", text, run, isOwn: true, time: Date.now() };
  const next = add(conversation, pictures.length > 0 ? { ...line, pictures } : line);
  return { ...next, runs: new Map(next.runs).set(run, "sent") };
}

/** A message of this page that did not reach the gateway: its words are in the field again. */
export function withdrawn(conversation: Conversation, run: string): Conversation {
  const next = without(conversation, run);
  return { ...next, lines: next.lines.filter((line) => line.id !== `u-${run}`) };
}

/** What a call of a tool has answered, which the page asked for. */
export function withResult(conversation: Conversation, id: string, result: string): Conversation {
  const isIt = (line: Line) => line.id === id;
  const lines = conversation.lines.map((line) => (isIt(line) && line.call ? { ...line, call: { ...line.call, result } } : line));
  return { ...conversation, lines };
}

export function failed(conversation: Conversation, run: string, message: string): Conversation {
  return settle(conversation, run, { id: `e-${run}`, kind: "error", text: message, run });
}

/** The answer to a stop: `id` is the stop's own, which is no run. What it stopped ends with events of its own. */
export function onStop(conversation: Conversation, id: string, stop: ChatAborted): Conversation {
  const next = without(conversation, id);
  if (stop.aborted) return next;
  return add(next, { id: `n-${id}`, kind: "note", text: isBusy(next) ? CANNOT_STOP : NOTHING_TO_STOP });
}

export function onChat(before: Conversation, event: ChatEvent): Conversation {
  const run = event.runId;
  const conversation = withoutNotice(endsUnnamed(before, event) ? begin(before, run) : before, run);
  const text = messageText(event.message);
  switch (event.state) {
    case "delta":
      return { ...begin(conversation, run), arriving: { run, text } };
    case "final":
      return settle(conversation, run, finalLine(conversation, event, text));
    case "aborted": {
      // A message of another client that a person stopped while it waited: the page shows nothing of it yet.
      if (event.stopReason !== "timeout" && !isKnown(conversation, run)) return conversation;
      const text = event.stopReason === "timeout" ? TIME_LIMIT : STOPPED;
      return settle(keepArriving(conversation, run, "p"), run, { id: `x-${run}`, kind: "note", text, run });
    }
    case "error": {
      const text = event.errorMessage ?? "The run failed.";
      return settle(keepArriving(conversation, run, "p"), run, { id: `e-${run}`, kind: "error", text, run });
    }
  }
}

/** Whether a run that was stopped, or failed, is the one that the history shows under way: nothing else tells its name. */
function endsUnnamed(conversation: Conversation, event: ChatEvent): boolean {
  const isBroken = event.state === "aborted" || event.state === "error";
  return isBroken && conversation.runs.has(UNNAMED) && !conversation.runs.has(event.runId);
}

function isKnown(conversation: Conversation, run: string): boolean {
  return conversation.runs.has(run) || conversation.lines.some((line) => line.run === run);
}

function finalLine(conversation: Conversation, event: ChatEvent, text: string): Line | undefined {
  const run = event.runId;
  if (text) return { id: `a-${run}-${event.seq}`, kind: "assistant", text, run, time: Date.now() };
  // A message that another run took in never begins, and that run answers it.
  if (conversation.runs.get(run) !== "begun") return undefined;
  return { id: `x-${run}`, kind: "note", text: NO_REPLY, run };
}

/** When the event's run began, if that is what it tells. */
export function startOf(event: AgentEvent): number | undefined {
  const data = event.data as { phase?: string; startedAt?: number };
  return event.stream === "lifecycle" && data.phase === "start" ? data.startedAt : undefined;
}

/** Whether a run ended before its time: its `chat` event may have come before. */
function endsStopped(event: AgentEvent): boolean {
  return event.stream === "lifecycle" && (event.data as { aborted?: boolean }).aborted === true;
}

/** What is tried after a call of the model failed, if the event tells that. */
function noticeOf(event: AgentEvent): string | undefined {
  const data = event.data as { phase?: string; text?: string };
  const isNotice = event.stream === "lifecycle" && (data.phase === "retry" || data.phase === "fallback");
  return isNotice ? data.text : undefined;
}

function withoutNotice(conversation: Conversation, run: string): Conversation {
  return conversation.notice?.run === run ? { ...conversation, notice: undefined } : conversation;
}

interface ToolData {
  phase?: string;
  name?: string;
  toolCallId?: string;
  args?: unknown;
  isError?: boolean;
  /** In sessions whose verbose level is `full`. */
  result?: unknown;
}

export function onAgent(before: Conversation, event: AgentEvent): Conversation {
  const { runId: run } = event;
  const notice = noticeOf(event);
  const conversation = withoutNotice(withProgress(before, event), run);
  // One that comes behind the end of its run, as when that is stopped, is about nothing any more.
  if (notice !== undefined && conversation.runs.has(run)) return { ...conversation, notice: { run, text: notice } };
  if (event.stream !== "tool") return conversation;
  const data = event.data as ToolData;
  const id = data.toolCallId;
  if (data.phase === "start") {
    // What the model said before the call is a message of its own: keep it above the call.
    const before = { ...keepArriving(conversation, run, `b-${id}`), arriving: undefined };
    const call = { id, state: "running", args: data.args } as const;
    return add(before, { id: `t-${run}-${id}`, kind: "tool", text: describe(data.name, data.args), run, call });
  }
  if (data.phase !== "result") return conversation;
  // The call of a run that was under way when the page was loaded is in the history, which knows no run.
  const isIt = (line: Line) => line.call?.id === id && (line.run === run || (line.run === undefined && !hasEnded(line)));
  const ended = { state: data.isError ? "failed" : "done", ...(data.result ? { result: messageText(data.result) } : {}) } as const;
  const close = (line: Line) => (isIt(line) ? { ...line, call: { ...line.call, id, ...ended } } : line);
  return { ...conversation, lines: conversation.lines.map(close) };
}

function withProgress(conversation: Conversation, event: AgentEvent): Conversation {
  if (startOf(event) !== undefined) return begin(conversation, event.runId);
  if (!conversation.runs.has(UNNAMED)) return conversation;
  return endsStopped(event) ? without(conversation, UNNAMED) : begin(conversation, event.runId);
}

/** What has arrived of an answer becomes a line. */
function keepArriving(conversation: Conversation, run: string, part: string): Conversation {
  const { arriving } = conversation;
  if (arriving?.run !== run || !arriving.text) return conversation;
  return add(conversation, { id: `${part}-${run}`, kind: "assistant", text: arriving.text, run, time: Date.now() });
}

function hasEnded(line: Line): boolean {
  return line.call?.state === "done" || line.call?.state === "failed";
}

/** The run is over, and with it the calls that had no result. */
function settle(conversation: Conversation, run: string, line: Line | undefined): Conversation {
  const wasAtWork = conversation.runs.get(run) === "begun";
  const isOf = (known: Line) => known.run === run || (known.run === undefined && wasAtWork);
  const closed = (known: Line) =>
    isOf(known) && known.call?.state === "running" ? { ...known, call: { ...known.call, state: undefined } } : known;
  const arriving = conversation.arriving?.run === run ? undefined : conversation.arriving;
  const ended = { ...without(conversation, run), arriving, lines: conversation.lines.map(closed) };
  return line ? add(ended, line) : ended;
}

/** A run is seen at work: then it is the one that the history shows under way. */
function begin(conversation: Conversation, run: string): Conversation {
  const next = without(conversation, UNNAMED);
  return { ...next, runs: new Map(next.runs).set(run, "begun") };
}

function without(conversation: Conversation, run: string): Conversation {
  const runs = new Map(conversation.runs);
  runs.delete(run);
  return { ...conversation, runs };
}

function add(conversation: Conversation, line: Line): Conversation {
  if (conversation.lines.some((known) => known.id === line.id)) return conversation;
  return { ...conversation, lines: [...conversation.lines, line] };
}
