import { describe, expect, it } from '@jest/globals';
import { type CommandEnd, EndMarkScanner } from './shell-process.js';

const MARK = '0f3a';

function scan(text: string, size: number): { output: string; end: CommandEnd | null } {
  const scanner = new EndMarkScanner(MARK);
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

describe('EndMarkScanner', () => {
  it.each([1, 2, 3, 7, 1000])('finds the end in chunks of %d bytes', (size) => {
    expect(scan(`zwölf\0${MARK}\x003\0/a b/ü\0`, size)).toEqual({
      output: 'zwölf',
      end: { exitCode: 3, workingDir: '/a b/ü' },
    });
  });

  it('holds back nothing but the beginning of a mark', () => {
    const scanner = new EndMarkScanner(MARK);
    expect(Buffer.from(scanner.scan(Buffer.from('>>> ')).output).toString()).toBe('>>> ');
    expect(Buffer.from(scanner.scan(Buffer.from(`a\0b\0${MARK.slice(0, 2)}`)).output).toString()).toBe(
      'a\0b',
    );
  });

  it('takes no mark for an end that nothing follows but more output', () => {
    const scanner = new EndMarkScanner(MARK);
    const flood = Buffer.alloc(64 * 1024, 'x');
    let passed = scanner.scan(Buffer.from(`\0${MARK}\0`)).output.length;
    for (let round = 0; round < 100; round += 1) {
      passed += scanner.scan(flood).output.length;
    }
    // A command can read the shell's variables and write the mark itself; the output after that must not be held back.
    expect(passed).toBeGreaterThan(99 * flood.length);
    expect(scanner.scan(Buffer.from(`\0${MARK}\x000\0/a\0`)).end).toEqual({ exitCode: 0, workingDir: '/a' });
  });

  it.each([`\0${MARK}\0x\0/a\0`, `\0${MARK}\x003\0a\0`, `\0${MARK}\x00-1\0/a\0`])(
    'takes %j for output: no shell ends a command like that',
    (text) => {
      expect(scan(text, 1000)).toEqual({ output: text, end: null });
    },
  );

  it.each([1, 5, 1000])('passes similar bytes through in chunks of %d', (size) => {
    const text = `a\0b\0${MARK.slice(0, 3)}\0 ${MARK} \0`;
    expect(scan(text, size)).toEqual({ output: text, end: null });
  });
});
