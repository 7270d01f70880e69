const MAX_DEPTH = 64;
const TOO_DEEP = '[…]';

/** Removes what servers refuse in JSON: halves of characters, and NUL. */
export function cleanText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}

export function isBlank(text: string): boolean {
  return !/[^\s\u200b\u2060]/.test(text);
}

/** Cleans every text in a value, and cuts it where parsers give up. */
export function cleanJson(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') {
    return cleanText(value);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  if (depth === MAX_DEPTH) {
    return TOO_DEEP;
  }
  return Array.isArray(value)
    ? value.map((item) => cleanJson(item, depth + 1))
    : Object.fromEntries(
        Object.entries(value).map(([name, member]) => [cleanText(name), cleanJson(member, depth + 1)]),
      );
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
/** Code units looked at around a cut; a grapheme is rarely longer. */
const WINDOW = 64;

/** The beginning of a text, cut between graphemes. */
export function textHead(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, boundaryBefore(text, Math.max(length, 0)));
}

export function textTail(text: string, length: number): string {
  if (text.length <= length) {
    return text;
  }
  const start = text.length - Math.max(length, 0);
  const boundary = boundaryBefore(text, start);
  return text.slice(boundary === start ? start : boundaryAfter(text, start));
}

function boundaryBefore(text: string, position: number): number {
  const start = windowStart(text, position);
  const segments = segmenter.segment(text.slice(start, position + WINDOW));
  const last = segments.containing(position - start);
  const boundary = start + (last?.index ?? position - start);
  // A grapheme longer than the window is cut between its code points.
  return boundary > start || position === start ? boundary : codePointBefore(text, position);
}

function boundaryAfter(text: string, position: number): number {
  const start = windowStart(text, position);
  const found = segmenter.segment(text.slice(start, position + WINDOW)).containing(position - start);
  const end = found === undefined ? text.length : start + found.index + found.segment.length;
  const isInside = codePointBefore(text, position) < position;
  return end < position + WINDOW ? end : position + (isInside ? 1 : 0);
}

function windowStart(text: string, position: number): number {
  return codePointBefore(text, Math.max(0, position - WINDOW));
}

function codePointBefore(text: string, position: number): number {
  const isInside =
    position > 0 && /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(position - 1, position + 1));
  return isInside ? position - 1 : position;
}

/** How the base64 of these types begins; all model servers take them. The type that is declared is wrong too often. */
const IMAGES: readonly (readonly [mediaType: string, beginning: RegExp])[] = [
  ['image/png', /^iVBORw0KGgo/],
  ['image/jpeg', /^\/9j\//],
  ['image/gif', /^R0lGODlh|^R0lGODdh/],
  ['image/webp', /^UklGR.{6}XRUJQ/],
];

export function imageType(base64: string): string | null {
  return IMAGES.find(([, beginning]) => beginning.test(base64))?.[0] ?? null;
}

/** Looks for what is no base64: `+` over megabytes throws a RangeError once V8 stops optimizing patterns. */
export function isBase64(text: string): boolean {
  return text !== '' && !/[^A-Za-z0-9+/]/.test(text.replace(/={1,2}$/, ''));
}
