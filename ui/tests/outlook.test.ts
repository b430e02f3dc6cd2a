import assert from "node:assert/strict";
import test from "node:test";
import { isOver, outlook } from "../src/outlook";
import type { SessionRow, SessionsListResult } from "../src/protocol";
import { answer, call, remark, result, user } from "./stored";

const KEY = "agent:main:main";
const HOUR = 60 * 60 * 1000;
const history = (messages: object[]) => ({ sessionKey: KEY, messages });

/** How a history goes on whose session's row is as given, three hours after the beginning of time. */
function goesOn(messages: object[], row: Partial<SessionRow> = {}, ts = 3 * HOUR): string {
  const sessions = [{ key: KEY, kind: "direct", updatedAt: HOUR, ...row }];
  return outlook(history(messages), KEY, { ts, sessions } as unknown as SessionsListResult);
}

test("a history that ends with an answer is over", () => {
  const rows: [messages: object[], over: boolean][] = [
    [[], true],
    [[user("go"), answer("done")], true],
    [[user("go"), answer("", { stopReason: "error" })], true],
    [[user("go"), answer("half", { stopReason: "aborted" })], true],
    [[user("go")], false],
    [[user("go"), call("c")], false],
    [[user("go"), call("c"), result("c", "a.txt")], false],
    [[user("go"), remark("switched")], false],
    [[user("go"), { role: "system", content: [] }], false],
  ];
  for (const [messages, over] of rows) assert.deepEqual(isOver(history(messages)), over, JSON.stringify(messages));
});

test("a run is under way unless a person stopped it", () => {
  const early = user("go", HOUR / 2);
  const late = user("go", 2 * HOUR);
  const cut = result("c", "[openclaw] The run was stopped while this call was under way.");
  assert.deepEqual(goesOn([early]), "underWay");
  assert.deepEqual(goesOn([early], { abortedLastRun: true }), "stopped");
  assert.deepEqual(goesOn([late], { abortedLastRun: true }), "underWay", "the run before it was stopped");
  assert.deepEqual(goesOn([late, call("c"), cut]), "stopped");
  assert.deepEqual(goesOn([late], { key: "agent:main:other", abortedLastRun: true }), "underWay");
});

test("a turn that was broken off long ago is not waited for", () => {
  assert.deepEqual(goesOn([user("go", HOUR)], {}, 24 * HOUR), "underWay");
  assert.deepEqual(goesOn([user("go", HOUR)], {}, 26 * HOUR), "unanswered");
});
