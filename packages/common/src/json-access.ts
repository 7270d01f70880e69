import { isJsonObject } from './json-merge.js';

/** The value at a path of object keys in JSON of unknown shape. */
export function jsonAt(value: unknown, ...path: string[]): unknown {
  let current = value;
  for (const key of path) {
    if (!isJsonObject(current) || !Object.hasOwn(current, key)) {
      return undefined;
    }
    current = current[key];
  }
  return current;
}

export function jsonText(value: unknown, ...path: string[]): string | null {
  const found = jsonAt(value, ...path);
  return typeof found === 'string' && found !== '' ? found : null;
}

export function jsonNumber(value: unknown, ...path: string[]): number | null {
  const found = jsonAt(value, ...path);
  return typeof found === 'number' && Number.isFinite(found) ? found : null;
}

export function jsonList(value: unknown, ...path: string[]): unknown[] {
  const found = jsonAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The parsed text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The values of a stream that has one in each line; what follows the last line is left out. @throws SyntaxError */
export async function* jsonLines(stream: NodeJS.ReadableStream): AsyncGenerator<unknown, void> {
  stream.setEncoding('utf8');
  let rest = '';
  for await (const chunk of stream) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.filter((text) => text.trim() !== '')) {
      yield JSON.parse(line);
    }
  }
}
