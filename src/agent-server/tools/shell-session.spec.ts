import { describe, expect, it } from '@jest/globals';
import { type CommandEnd, MarkScanner, OutputWindow } from './shell-session.js';

const MARK = '0f3a';

/** Feeds a text in chunks of a size. */
function scan(text: string, size: number): { output: string; end: CommandEnd | null } {
  const scanner = new MarkScanner(MARK);
  const bytes = Buffer.from(text);
  const output: Uint8Array[] = [];
  let end: CommandEnd | null = null;
  for (let at = 0; at < bytes.length && end === null; at += size) {
    const found = scanner.scan(bytes.subarray(at, at + size));
    output.push(found.output);
    end = found.end;
  }
  if (end === null) {
    output.push(scanner.flush());
  }
  return { output: Buffer.concat(output).toString('utf8'), end };
}

describe('MarkScanner', () => {
  it.each([1, 2, 3, 7, 1000])('finds the end in chunks of %d bytes', (size) => {
    expect(scan(`zwölf\0${MARK}\x003\0/a b/ü\0`, size)).toEqual({
      output: 'zwölf',
      end: { exitCode: 3, workingDir: '/a b/ü' },
    });
  });

  it.each([1, 5, 1000])('lets similar bytes pass, in chunks of %d', (size) => {
    const text = `a\0b\0${MARK.slice(0, 3)}\0 ${MARK} \0`;
    expect(scan(text, size)).toEqual({ output: text, end: null });
  });
});

function windowOf(limit: number, ...chunks: (string | number[])[]): string {
  const window = new OutputWindow(limit);
  chunks.forEach((chunk) => window.push(Buffer.from(chunk)));
  return window.text();
}

describe('OutputWindow', () => {
  it.each([
    ['nothing', [], ''],
    ['what fits', ['abc', 'def', 'ghij'], 'abcdefghij'],
    ['both ends of what does not', ['abcdefghijk'], 'abcde\n[... 1 characters left out ...]\nghijk'],
    [
      'both ends of many pieces',
      'abcdefghijklmnopqrstuvwxyz'.split(''),
      'abcde\n[... 16 characters left out ...]\nvwxyz',
    ],
    ['characters in halves', [[0xc3], [0xa4]], 'ä'],
  ])('keeps %s', (_, chunks, text) => {
    expect(windowOf(10, ...chunks)).toBe(text);
  });
});
