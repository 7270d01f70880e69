const HEADER_BYTES = 8;

/**
 * The text of a container's log. Without a terminal the engine sends frames of 8 bytes (stream, 3 unused, length as
 * big-endian number) and a payload: Engine API, "Attach to a container", stream format.
 */
export function plainLog(log: Buffer): string {
  const parts: Buffer[] = [];
  for (let at = 0; at + HEADER_BYTES <= log.length;) {
    const end = at + HEADER_BYTES + log.readUInt32BE(at + 4);
    parts.push(log.subarray(at + HEADER_BYTES, end));
    at = end;
  }
  return Buffer.concat(parts).toString('utf8');
}

/** The end of a text, whole lines where there is more than `maxCharacters`. */
export function lastLines(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) {
    return text;
  }
  const end = text.slice(-maxCharacters);
  const newline = end.indexOf('\n');
  return newline === -1 || newline === end.length - 1 ? end : end.slice(newline + 1);
}
