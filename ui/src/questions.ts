// What other clients ask in the conversation. No event tells it, but it is in the history when its run begins.
import { storedLines } from "./history";
import type { Line } from "./line";

/** What a person said, with the time of its acceptance, by which the page knows it again. */
type Question = Line & { at: number };

/** The lines with what was said up to the beginning of a run and is not among them. */
export function withQuestions(
  lines: readonly Line[],
  messages: readonly unknown[],
  run: string,
  startedAt: number,
): readonly Line[] {
  const shown = new Set(lines.map((line) => line.at));
  const missing = questions(messages).filter(({ at }) => at <= startedAt && !shown.has(at));
  const own = lines.find((line) => line.kind === "user" && line.run === run);
  // The last one is what this run answers. A message of this page has no time until then.
  const asked = own?.at === undefined ? missing.pop() : undefined;
  const known = own && asked ? lines.map((line) => (line === own ? { ...own, at: asked.at } : line)) : lines;
  const added: Line[] = missing.filter(({ text }) => !isUntimed(known, text)).map((line) => ({ ...line, id: `q-${line.at}` }));
  if (!own && asked) added.push({ ...asked, id: `u-${run}`, run });
  const first = known.findIndex((line) => line.run === run);
  return known.toSpliced(first < 0 ? known.length : first, 0, ...added);
}

function questions(messages: readonly unknown[]): Question[] {
  return storedLines(messages, "over").filter((line): line is Question => line.kind === "user" && line.at !== undefined);
}

/** Whether a message of this page that never began says the same: then it is this one. */
function isUntimed(lines: readonly Line[], text: string): boolean {
  return lines.some((line) => line.kind === "user" && line.at === undefined && line.text === text);
}
