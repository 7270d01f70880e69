/** Longest text that a tool shows the model. */
export const MAX_TOOL_TEXT = 30_000;

/** What stands where something was left out, in a group of its own. */
export const CUT_MARK = /(\n\[\.\.\. \d+ characters left out \.\.\.\]\n)/;

/** Keeps the beginning and the end of a text and says how much is missing between them. */
export function clipText(text: string, limit: number = MAX_TOOL_TEXT): string {
  if (text.length <= limit) {
    return text;
  }
  const head = Math.ceil(limit / 2);
  return joinEnds(text.slice(0, head), text.slice(text.length - (limit - head)), text.length - limit);
}

/** @param missing characters between the two */
export function joinEnds(head: string, tail: string, missing: number): string {
  return `${head}\n[... ${missing} characters left out ...]\n${tail}`;
}
