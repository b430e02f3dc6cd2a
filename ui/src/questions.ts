// What other clients ask in the conversation. No event tells it, but it is in the history when its run begins.
import { storedLines } from "./history";
import { STOPPED, type Line } from "./line";

/** What a person said, with the time of its acceptance, by which the page knows it again. */
type Question = Line & { at: number };

/** The lines with what a run that began answers, and what was said before that and is not among them. */
export function withQuestions(
  lines: readonly Line[],
  messages: readonly unknown[],
  run: string,
  startedAt: number,
): readonly Line[] {
  const stored = storedLines(messages, "over");
  const shown = new Set(lines.map((line) => line.at));
  const missing = stored.filter(isQuestion).filter(({ at }) => at <= startedAt && !shown.has(at));
  const own = lines.find((line) => line.kind === "user" && line.run === run);
  // Runs begin in the order of the history: what comes after this one's question is for the runs after it. A message of
  // this page has no time until its run begins.
  const asks = missing.findIndex((line) => !isPassedOver(stored, line));
  const asked = own?.at === undefined ? missing[asks] : undefined;
  const earlier = asks < 0 ? missing : missing.slice(0, asks);
  const known = own && asked ? lines.map((line) => (line === own ? { ...own, at: asked.at } : line)) : lines;
  const added: Line[] = earlier.filter(({ text }) => !isUntimed(known, text)).map((line) => ({ ...line, id: `q-${line.at}` }));
  if (!own && asked) added.push({ ...asked, id: `u-${run}`, run });
  const first = known.findIndex((line) => line.run === run);
  return known.toSpliced(first < 0 ? known.length : first, 0, ...added);
}

function isQuestion(line: Line): line is Question {
  return line.kind === "user" && line.at !== undefined;
}

/** Whether no answer follows a question but the next question: it was stopped before its run began. */
function isPassedOver(stored: readonly Line[], question: Line): boolean {
  const isNext = (line: Line) => !isCommand(line) && (line.kind !== "note" || line.text !== STOPPED);
  const next = stored.slice(stored.indexOf(question) + 1).find(isNext);
  return next?.kind === "user";
}

/** Commands are answered beside runs: they end no question. */
function isCommand(line: Line): boolean {
  return line.kind === "user" && line.at === undefined;
}

/** Whether a message of this page that never began says the same: then it is this one. */
function isUntimed(lines: readonly Line[], text: string): boolean {
  return lines.some((line) => line.kind === "user" && line.at === undefined && line.text === text);
}
