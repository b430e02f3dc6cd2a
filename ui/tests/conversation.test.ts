import assert from "node:assert/strict";
import test from "node:test";
import { EMPTY, isBusy, loaded, loading, onAgent, onChat, onStart, onStop, sent, type Conversation } from "../src/conversation";
import type { Outlook } from "../src/outlook";
import type { AgentEvent, ChatEvent } from "../src/protocol";
import { answer, call, user } from "./stored";

type Step = (conversation: Conversation) => Conversation;

const play = (...steps: Step[]) => steps.reduce((conversation, step) => step(conversation), EMPTY);

const message = (text: string) => ({ role: "assistant", content: [{ type: "text", text }] });
const chat = (runId: string, state: ChatEvent["state"], fields: Partial<ChatEvent> = {}): Step => {
  const event: ChatEvent = { runId, sessionKey: "k", seq: 1, state, ...fields };
  return (conversation) => onChat(conversation, event);
};
const delta = (run: string, text: string) => chat(run, "delta", { message: message(text) });
const final = (run: string, text?: string) => chat(run, "final", text ? { message: message(text) } : {});
const aborted = (run: string, stopReason: string) => chat(run, "aborted", { stopReason });
const agent = (runId: string, stream: string, data: object): Step => {
  const event = { runId, sessionKey: "k", stream, data, ts: 0 } as unknown as AgentEvent;
  return (conversation) => onAgent(conversation, event);
};
const start = (run: string) => agent(run, "lifecycle", { phase: "start", startedAt: 10 });
const asks = (run: string, text: string): Step => (conversation) => sent(conversation, run, text);
const stopped = (id: string, ...runIds: string[]): Step => {
  return (conversation) => onStop(conversation, id, { ok: true, aborted: runIds.length > 0, runIds });
};
const load = (outlook: Outlook, ...messages: object[]): Step => {
  return (conversation) => loaded(conversation, { sessionKey: "k", sessionId: "s", messages }, outlook);
};
/** A run begins, and the page reads the history. */
const begins = (run: string, startedAt: number, ...messages: object[]): Step => {
  const history = { sessionKey: "k", sessionId: "s", messages };
  return (conversation) => onStart(start(run)(conversation), history, run, startedAt);
};

/** What a person sees: the lines, what is arriving, and whether there is a Stop button. */
function seen(conversation: Conversation): string[] {
  const lines = conversation.lines.map((line) => [line.kind, ": ", line.text, line.call?.state ? ` (${line.call.state})` : ""].join(""));
  const { arriving, notice } = conversation;
  const pending = [...(arriving ? [`arriving: ${arriving.text}`] : []), ...(notice ? [`notice: ${notice.text}`] : [])];
  return [...lines, ...pending, ...(isBusy(conversation) ? ["busy"] : [])];
}

test("a stop with nothing to stop says so and leaves nothing waiting", () => {
  assert.deepEqual(seen(play(asks("s", "/stop"), stopped("s"))), ["user: /stop", "note: There was nothing to stop."]);
});

test("a stop ends the run that it stopped", () => {
  const conversation = play(asks("r", "go"), start("r"), asks("s", "/stop"), aborted("r", "stop"), stopped("s", "r"));
  assert.deepEqual(seen(conversation), ["user: go", "user: /stop", "note: Stopped."]);
});

test("a stop that cannot stop a program's run says so and leaves it waiting", () => {
  const conversation = play(start("other"), stopped("button"));
  assert.deepEqual(seen(conversation), [
    "note: Not stopped: a program asked for this answer, and only that program can stop it.",
    "busy",
  ]);
});

test("a message that is sent while an answer arrives leaves the answer there", () => {
  const conversation = play(asks("r", "go"), start("r"), delta("r", "once upon"), asks("s", "/stop"));
  assert.deepEqual(seen(conversation), ["user: go", "user: /stop", "arriving: once upon", "busy"]);
  const after = play(() => conversation, aborted("r", "stop"), stopped("s", "r"));
  assert.deepEqual(seen(after), ["user: go", "user: /stop", "assistant: once upon", "note: Stopped."]);
});

test("the page is busy until the last of its messages is answered", () => {
  const conversation = play(asks("a", "one"), start("a"), asks("b", "two"), final("a", "first"));
  assert.deepEqual(seen(conversation), ["user: one", "user: two", "assistant: first", "busy"]);
  const after = play(() => conversation, start("b"), final("b", "second"));
  assert.deepEqual(seen(after), ["user: one", "user: two", "assistant: first", "assistant: second"]);
});

test("a run that says nothing, or that the clock stops, is told from one that a person stopped", () => {
  const rows: [step: Step, line: string][] = [
    [final("r"), "note: No reply."],
    [aborted("r", "timeout"), "note: Stopped at its time limit."],
    [aborted("r", "rpc"), "note: Stopped."],
  ];
  for (const [end, line] of rows) assert.deepEqual(seen(play(asks("r", "go"), start("r"), end)), ["user: go", line]);
});

test("a message that another run takes in ends without a word", () => {
  assert.deepEqual(seen(play(asks("r", "go"), final("r"))), ["user: go"]);
});

test("a page that is loaded during a run shows it, whoever asked, until it ends", () => {
  const waiting = play(loading, load("underWay", user("go")));
  assert.deepEqual(seen(waiting), ["user: go", "busy"]);
  const rows: [end: Step[], line: string][] = [
    [[agent("r", "lifecycle", { phase: "end" }), final("r", "done")], "assistant: done"],
    [[agent("r", "lifecycle", { phase: "end" }), final("r")], "note: No reply."],
    [[delta("r", "do"), final("r", "done")], "assistant: done"],
    [[aborted("r", "stop"), agent("r", "lifecycle", { phase: "end", aborted: true })], "note: Stopped."],
    [[agent("r", "lifecycle", { phase: "end", aborted: true }), aborted("r", "timeout")], "note: Stopped at its time limit."],
    [[chat("r", "error", { errorMessage: "401" })], "error: 401"],
  ];
  for (const [end, line] of rows) assert.deepEqual(seen(play(() => waiting, ...end)), ["user: go", line]);
  // The answer to a command is no end of that run.
  assert.deepEqual(seen(play(() => waiting, final("c", "switched"))), ["user: go", "assistant: switched", "busy"]);
});

test("a page that is loaded during a call shows that it runs and how it ended", () => {
  const calling = play(loading, load("underWay", user("go"), call("c")));
  assert.deepEqual(seen(calling), ["user: go", "tool: exec: ls (running)", "busy"]);
  const result = agent("r", "tool", { phase: "result", toolCallId: "c", isError: false });
  assert.deepEqual(seen(play(() => calling, result)), ["user: go", "tool: exec: ls (done)", "busy"]);
  assert.deepEqual(seen(play(() => calling, aborted("r", "stop"))), ["user: go", "tool: exec: ls", "note: Stopped."]);
});

test("a page that is loaded after a run waits for nothing", () => {
  assert.deepEqual(seen(play(loading, load("over", user("go"), answer("done")))), ["user: go", "assistant: done"]);
  assert.deepEqual(seen(play(loading, load("stopped", user("go")))), ["user: go", "note: Stopped."]);
  const meanwhile = play(loading, start("r"), load("underWay", user("go")), final("r", "done"));
  assert.deepEqual(seen(meanwhile), ["user: go", "assistant: done"]);
});

test("a message of another client is shown with its answer", () => {
  const before = [user("one", 1), answer("first")];
  const loadedPage = play(loading, load("over", ...before));
  const asked = play(() => loadedPage, begins("r", 3, ...before, user("two", 2)));
  assert.deepEqual(seen(asked), ["user: one", "assistant: first", "user: two", "busy"]);
  assert.deepEqual(seen(play(() => asked, final("r", "second"))).slice(2), ["user: two", "assistant: second"]);
  // The history may come after the answer, and when the next one has asked.
  const late = play(() => loadedPage, start("r"), final("r", "second"), (conversation) => {
    const messages = [...before, user("two", 2), answer("second"), user("three", 2.5)];
    return onStart(conversation, { sessionKey: "k", sessionId: "s", messages }, "r", 3);
  });
  assert.deepEqual(seen(late).slice(2), ["user: two", "assistant: second"]);
});

test("a message that is on the page is not shown again when its run begins", () => {
  const own = play(loading, load("over"), asks("r", "one"), begins("r", 2, user("one", 1)));
  assert.deepEqual(seen(own), ["user: one", "busy"]);
  const next = play(() => own, final("r", "first"), begins("other", 9, user("one", 1), answer("first"), user("two", 8)));
  assert.deepEqual(seen(next), ["user: one", "assistant: first", "user: two", "busy"]);
  // One that the gateway keeps in other words, and one that was stopped while it waited.
  const worded = play(asks("r", "/new hello"), begins("r", 2, user("hello", 1)));
  assert.deepEqual(seen(worded), ["user: /new hello", "busy"]);
  const waited = play(asks("q", "later"), aborted("q", "stop"), begins("r", 4, user("later", 1), user("two", 3), answer("yes")));
  assert.deepEqual(seen(waited), ["user: later", "note: Stopped.", "user: two", "busy"]);
});

test("a new session begins with what was said for its run, whoever said it", () => {
  const elsewhere: Step = (conversation) => ({ ...conversation, session: "before" });
  const page = play(loading, load("over", user("old", 1), answer("first")), elsewhere, begins("r", 4, user("/new", 3)));
  assert.deepEqual(seen(page), ["user: /new", "busy"]);
});

test("a stop of another client's message that still waits is no line without its message", () => {
  assert.deepEqual(seen(play(asks("r", "go"), start("r"), aborted("other", "rpc"))), ["user: go", "busy"]);
});

test("messages of another client whose runs begin at once are shown with their own answers", () => {
  const messages = [user("one", 1), user("two", 2), answer("second"), user("three", 3), answer("third")];
  const history = { sessionKey: "k", sessionId: "s", messages };
  const page = play(start("b"), final("b", "second"), start("c"), final("c", "third"));
  const after = play(() => page, (c) => onStart(c, history, "b", 9), (c) => onStart(c, history, "c", 9));
  assert.deepEqual(seen(after), ["user: one", "user: two", "assistant: second", "user: three", "assistant: third"]);
});

const retry = (run: string, text: string) => agent(run, "lifecycle", { phase: "retry", attempt: 2, maxAttempts: 4, text });

test("a model that does not answer is told below the answer that waits, until something comes", () => {
  const down = "p/m does not answer (down); trying again in 2 s (2 of 4)";
  const waiting = play(asks("r", "go"), start("r"), retry("r", down));
  assert.deepEqual(seen(waiting), ["user: go", `notice: ${down}`, "busy"]);
  const later = play(() => waiting, retry("r", "again"), agent("r", "lifecycle", { phase: "fallback", text: "asking q/n" }));
  assert.deepEqual(seen(later), ["user: go", "notice: asking q/n", "busy"]);
  const rows: [step: Step, rest: string[]][] = [
    [delta("r", "well"), ["arriving: well", "busy"]],
    [agent("r", "assistant", { text: "well", delta: "well" }), ["busy"]],
    [agent("r", "tool", { phase: "start", name: "ls", toolCallId: "c" }), ["tool: ls (running)", "busy"]],
    [final("r", "well"), ["assistant: well"]],
    [aborted("r", "stop"), ["note: Stopped."]],
    [chat("r", "error", { errorMessage: "down" }), ["error: down"]],
    [loading, []],
    [final("other", "hi"), ["assistant: hi", `notice: ${down}`, "busy"]],
  ];
  for (const [step, rest] of rows) assert.deepEqual(seen(play(() => waiting, step)), ["user: go", ...rest]);
});

test("a notice behind the end of its run leaves nothing waiting", () => {
  const stopped = play(asks("r", "go"), start("r"), aborted("r", "stop"), retry("r", "down"));
  assert.deepEqual(seen(stopped), ["user: go", "note: Stopped."]);
});

test("a page that is loaded while a run waits for its model shows that run", () => {
  const page = play(loading, load("underWay", user("go")), retry("r", "down"));
  assert.deepEqual(seen(page), ["user: go", "notice: down", "busy"]);
  assert.deepEqual(seen(play(() => page, final("r", "done"))), ["user: go", "assistant: done"]);
});
