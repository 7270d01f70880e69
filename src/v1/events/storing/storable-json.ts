/** Stands in for what PostgreSQL cannot keep in a text. */
const REPLACEMENT = '\u{FFFD}';
/** How `JSON.stringify` writes NUL and surrogates that stand alone. */
const SUSPECT = /\\u(?:0000|d[89a-f])/i;

/** The text with NUL characters and lone surrogates replaced, each by U+FFFD: the same text every time. */
export function storableText(text: string): string {
  return text.replaceAll('\0', REPLACEMENT).toWellFormed();
}

/** The same value with every text (and key) in it made storable. */
export function storableJson<T>(value: T): T {
  return SUSPECT.test(JSON.stringify(value) ?? '') ? (cleaned(value) as T) : value;
}

function cleaned(value: unknown): unknown {
  if (typeof value === 'string') {
    return storableText(value);
  }
  if (Array.isArray(value)) {
    return value.map(cleaned);
  }
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [storableText(key), cleaned(member)]))
    : value;
}
