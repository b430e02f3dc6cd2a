// What of a stored answer is meant for nobody. While it came the gateway left the same out (crates/agent/src/text/silent.rs); the history
// has it all.

const TOKEN = "NO_REPLY";
const SKIP = "ANNOUNCE_SKIP";

/** White space and punctuation around a token. Underscores are part of words unless they wrap both ends. */
const FRAME = String.raw`[\s!-/:-@\[-^${"`"}{-~…“”‘’。！]+`;
const AROUND = new RegExp(`^${FRAME}|${FRAME}$`, "g");

/** A line that has the token for itself, with what may stand around it. */
const LINE = /^([*_([]*)NO_REPLY([*_)\].!…。！]*)$/u;
const PAIRS = ["**", "__", "()", "[]"] as const;

/** Whether the whole text is a token. */
export function isSilent(text: string): boolean {
  let inner = text.replace(AROUND, "");
  while (inner.length > 1 && inner.startsWith("_") && inner.endsWith("_")) inner = inner.slice(1, -1).replace(AROUND, "");
  return inner === TOKEN || inner === SKIP;
}

/** All but the token where it has the first or the last line for itself. */
export function spoken(text: string): string {
  return isSilent(text) ? text : withoutLastLines(withoutFirstLines(text));
}

function withoutFirstLines(text: string): string {
  let rest = text;
  for (let end = rest.indexOf("\n"); end >= 0 && isTokenLine(rest.slice(0, end)); end = rest.indexOf("\n")) {
    rest = rest.slice(end + 1).replace(/^[\r\n]+/, "");
  }
  return rest;
}

function withoutLastLines(text: string): string {
  let rest = text;
  for (;;) {
    const whole = rest.trimEnd();
    const start = whole.lastIndexOf("\n");
    if (start < 0 || !isTokenLine(whole.slice(start + 1)) || endsInFence(whole)) return rest;
    rest = whole.slice(0, start).trimEnd();
  }
}

function isTokenLine(line: string): boolean {
  const found = LINE.exec(line.trim());
  if (!found || /^( {4}|\t)/.test(line)) return false;
  const [, opening = "", closing = ""] = found;
  const count = (text: string, mark: string) => text.split(mark).length;
  return PAIRS.every((pair) => count(opening, pair.charAt(0)) === count(closing, pair.charAt(1)));
}

/** Whether a text ends within a block of code. */
function endsInFence(text: string): boolean {
  let open: string | undefined;
  for (const line of text.split("\n")) {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (!fence) continue;
    if (!open) open = fence;
    else if (fence.startsWith(open)) open = undefined;
  }
  return open !== undefined;
}
