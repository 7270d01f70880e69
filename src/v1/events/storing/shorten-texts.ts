/** The longest text that is kept whole, tried one after the other. */
const LENGTHS = [1_048_576, 262_144, 65_536, 8_192, 1_024];

/**
 * The value with its longest texts cut until its JSON has at most `maxBytes`; each says how much is missing. The value
 * itself when it is small enough. What is still too large then has too many members, and all but the texts and numbers
 * of its first level go.
 */
export function shortenTexts<T extends object>(value: T, maxBytes: number): T {
  if (fits(value, maxBytes)) {
    return value;
  }
  for (const length of LENGTHS) {
    const shorter = shortened(value, length) as T;
    if (fits(shorter, maxBytes)) {
      return shorter;
    }
  }
  const flat = Object.entries(shortened(value, 1_024) as object).filter(
    ([, member]) => typeof member !== 'object' || member === null,
  );
  return Object.fromEntries(flat) as T;
}

function fits(value: unknown, maxBytes: number): boolean {
  return Buffer.byteLength(JSON.stringify(value), 'utf8') <= maxBytes;
}

function shortened(value: unknown, length: number): unknown {
  if (typeof value === 'string') {
    return value.length <= length
      ? value
      : `${value.slice(0, length).toWellFormed()} [${value.length - length} characters left out]`;
  }
  if (Array.isArray(value)) {
    return value.map((element) => shortened(element, length));
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, shortened(member, length)]))
    : value;
}
