import assert from "node:assert/strict";
import test from "node:test";
import { resultOf, storedLines } from "../src/history";
import { answer, call, remark, result, user } from "./stored";

const shown = (...history: object[]) => storedLines(history, "over").map((line) => `${line.kind}: ${line.text}`);

test("a stopped message has its note when the next one comes", () => {
  assert.deepEqual(shown(user("one"), user("two"), answer("yes")), [
    "user: one",
    "note: Stopped.",
    "user: two",
    "assistant: yes",
  ]);
  assert.deepEqual(shown(user("one"), remark("switched"), user("two"), answer("yes")), [
    "user: one",
    "assistant: switched",
    "note: Stopped.",
    "user: two",
    "assistant: yes",
  ]);
  const cut = result("c", "[openclaw] The run was stopped while this call was under way; it may or may not have taken effect.");
  assert.deepEqual(shown(user("one"), call("c"), cut, user("two"), user("three"), answer("yes")), [
    "user: one",
    "tool: exec: ls",
    "note: Stopped.",
    "user: two",
    "note: Stopped.",
    "user: three",
    "assistant: yes",
  ]);
});

test("a message that went into the run under way was not stopped", () => {
  assert.deepEqual(shown(user("one"), call("c"), result("c", "a.txt"), user("two"), user("three"), answer("yes")), [
    "user: one",
    "tool: exec: ls",
    "user: two",
    "user: three",
    "assistant: yes",
  ]);
});

test("the time limit is told from a stop, and an empty answer from none", () => {
  const rows: [message: object, lines: string[]][] = [
    [answer("half", { stopReason: "aborted", errorMessage: "Request was aborted" }), ["assistant: half", "note: Stopped."]],
    [answer("", { stopReason: "aborted", errorMessage: "at its time limit of 4 s" }), ["note: Stopped at its time limit."]],
    [answer(""), ["note: No reply."]],
    [answer("NO_REPLY"), ["note: No reply."]],
    [answer("**NO_REPLY**."), ["note: No reply."]],
    [answer("_NO_REPLY_"), ["note: No reply."]],
    [answer("NO_REPLY\n\nAll is well."), ["assistant: All is well."]],
    [answer("All is well.\n\n(NO_REPLY)\n"), ["assistant: All is well."]],
    [answer("Say `NO_REPLY` then."), ["assistant: Say `NO_REPLY` then."]],
    [answer("Say this:\n```\nNO_REPLY"), ["assistant: Say this:\n```\nNO_REPLY"]],
    [answer("Say this:\n\n    NO_REPLY"), ["assistant: Say this:\n\n    NO_REPLY"]],
    [answer("", { stopReason: "error", errorMessage: "401" }), ["error: 401"]],
  ];
  for (const [message, lines] of rows) assert.deepEqual(shown(user("go"), message), ["user: go", ...lines]);
});

test("what becomes of the last turn is said below it", () => {
  const last = (end: "stopped" | "unanswered") => storedLines([user("go")], end).map((line) => line.text);
  assert.deepEqual(last("stopped"), ["go", "Stopped."]);
  assert.deepEqual(last("unanswered"), ["go", "No reply."]);
});

test("a command stands above the answer that the gateway keeps, and no question is passed over for it", () => {
  const status = { ...remark("All is well."), command: "/status" };
  assert.deepEqual(shown(user("one"), status, answer("yes")), ["user: one", "user: /status", "assistant: All is well.", "assistant: yes"]);
});

test("a message of pictures alone is a line, and a call has what it was given and what it answered", () => {
  const picture = { role: "user", content: [{ type: "image", mimeType: "image/png" }], timestamp: 1 };
  const history = [picture, call("c"), result("c", "a.txt"), answer("yes")];
  assert.deepEqual(shown(...history), ["user: (picture)", "tool: exec: ls", "assistant: yes"]);
  const { call: told } = storedLines(history, "over").find((line) => line.kind === "tool")!;
  assert.deepEqual(told, { id: "c", state: "done", args: { command: "ls" }, result: "a.txt" });
  assert.deepEqual(resultOf(history, "c"), "a.txt");
  assert.deepEqual(resultOf(history, "other"), undefined);
});
