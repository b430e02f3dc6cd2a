// Whether an answer is still to come, read from what the gateway stores: it is true whoever asked, and from any page.
import { lastTurn, type StoredMessage } from "./history";
import type { ChatHistoryResult, SessionsListResult } from "./protocol";

/** How a history goes on: with the answer of a run under way, or not at all. */
export type Outlook = "over" | "underWay" | "stopped" | "unanswered";

/** A turn that is open for longer was broken off where nobody could take it up again, such as in another gateway's files. */
const LONGEST_RUN_MS = 24 * 60 * 60 * 1000;

/** Whether the history is enough to tell. */
export function isOver(history: ChatHistoryResult): boolean {
  return lastTurn(history.messages as StoredMessage[]) === "over";
}

/**
 * Every end of a run leaves an answer, but for a stop before the model said anything. That one marks the session's row, which
 * keeps the mark until the next run ends: what was said after it is not what was stopped.
 */
export function outlook(history: ChatHistoryResult, key: string, sessions: SessionsListResult): Outlook {
  const messages = history.messages as StoredMessage[];
  const turn = lastTurn(messages);
  if (turn === "over" || turn === "stopped") return turn;
  const row = sessions.sessions.find((session) => session.key === key);
  const asked = messages.findLast((message) => message.role === "user")?.timestamp ?? 0;
  if (row?.abortedLastRun && asked <= (row.updatedAt ?? 0)) return "stopped";
  const latest = messages.at(-1)?.timestamp ?? 0;
  return sessions.ts - latest > LONGEST_RUN_MS ? "unanswered" : "underWay";
}
