import { describe, expect, it } from '@jest/globals';
import { processorMs } from '../../../../test/support/processor-time.js';
import { TerminalScreen, terminalText } from './terminal-screen.js';

const ESC = '\u001B';
const CSI = `${ESC}[`;

function screenOf(...chunks: string[]): string {
  let shown = '';
  const screen = new TerminalScreen((text) => {
    shown += text;
  });
  chunks.forEach((chunk) => screen.write(chunk));
  screen.end();
  return shown;
}

const CASES: [string, string, string][] = [
  ['plain text', 'one\n\ttwo\n', 'one\n\ttwo\n'],
  ['colours', `${CSI}1;31mred${CSI}0m and ${CSI}38;5;200mpink${CSI}m`, 'red and pink'],
  ['CR LF', 'one\r\ntwo\r\n', 'one\r\ntwo\r\n'],
  ['CR CR LF', 'one\r\r\ntwo', 'one\r\ntwo'],
  ['a progress bar', ' 10%\r 50%\r100%\ndone\n', '100%\ndone\n'],
  ['a shorter line over a longer one', 'abcdef\rxy', 'xycdef'],
  ['an erased line', `abcdef\r${CSI}Kxy`, 'xy'],
  ['an erased line whose cursor stays', `abc${CSI}2Kd`, '   d'],
  ['an erased beginning', `abcdef${CSI}3D${CSI}1K`, '    ef'],
  ['backspaces', 'abc\b\bX', 'aXc'],
  ['a spinner', '|\b/\b-\b\\\b done', ' done'],
  ['lines above', `a: 1\nb: 1\n${CSI}2Aa: 2\nb: 2\n`, 'a: 2\nb: 2\n'],
  ['lines above, erased', `aaaa\nbbbb\n${CSI}1F${CSI}Kb\n`, 'aaaa\nb\n'],
  ['everything below', `one\ntwo\nthree${CSI}2A\r${CSI}Jnew\n`, 'new\n'],
  ['a cleared screen', `old\nolder\n${CSI}H${CSI}2Jnew\n`, 'new\n'],
  ['a column', `abc${CSI}2GX`, 'aXc'],
  ['a column behind the end', `a${CSI}5Gb`, 'a   b'],
  ['a position', `one\ntwo\n${CSI}1;2HX`, 'oXe\ntwo\n'],
  ['a saved position', `a${ESC}7bcd${ESC}8X`, 'aXcd'],
  ['deleted and inserted characters', `abcdef\r${CSI}2P${CSI}1@`, ' cdef'],
  ['a title', `${ESC}]0;building…\u0007go`, 'go'],
  ['a link', `${ESC}]8;;https://example.com${ESC}\\text${ESC}]8;;${ESC}\\`, 'text'],
  ['a private mode', `${CSI}?25l${CSI}?2004hgo${CSI}?25h`, 'go'],
  ['a character set', `${ESC}(Bgo${ESC}=`, 'go'],
  ['a bell and others', 'a\u0007\u0000\u000Eb\u007F', 'ab'],
  ['eight-bit sequences', '\u009B31mred\u009B0m', 'red'],
  ['characters of other scripts', 'grün 日本 😀\n', 'grün 日本 😀\n'],
  ['movements beyond the edges', `${CSI}9999999A${CSI}99D${CSI}5Ba`, 'a'],
];

describe('TerminalScreen', () => {
  it.each(CASES)('shows %s, however it is cut into pieces', (_, output, shown) => {
    expect(terminalText(output)).toBe(shown);
    expect(screenOf(...output.split(''))).toBe(shown);
    for (let at = 0; at <= output.length; at += 1) {
      expect(screenOf(output.slice(0, at), output.slice(at))).toBe(shown);
    }
  });

  it('forgets sequences that never end', () => {
    expect(screenOf(`${ESC}]0;${'x'.repeat(10_000)}`)).toHaveLength(10_003);
    expect(screenOf('end\r')).toBe('end');
  });

  it('commits rows that the cursor cannot reach any more, and long ones', () => {
    const parts: string[] = [];
    const screen = new TerminalScreen((text) => parts.push(text));
    screen.write('line\n'.repeat(1_000));
    expect(parts.join('').length).toBeGreaterThan(600 * 5);
    screen.write('x'.repeat(5_000));
    expect(parts.join('')).toHaveLength(10_000);
    screen.write(`\r${CSI}9Ay`);
    screen.end();
    expect(parts.join('')).toBe(`${'line\n'.repeat(1_000)}${'x'.repeat(5_000)}y`);
  });

  it('takes time and memory in proportion to the length', () => {
    const outputs = [
      'word '.repeat(200_000),
      `${'x'.repeat(1_990)}${'\ry'.repeat(500_000)}`,
      `${CSI}99999C\b`.repeat(100_000),
      `${CSI}H\n`.repeat(100_000),
      `${ESC}]`.repeat(20_000),
      `${CSI}${'1;'.repeat(200_000)}`,
      `a\n${CSI}2J`.repeat(100_000),
    ];
    const took = processorMs(() => {
      for (const output of outputs) {
        screenOf(output);
        screenOf(...(output.slice(0, 60_000).match(/[^]{1,7}/g) ?? []));
      }
    });
    // Measured: about 2 s.
    expect(took).toBeLessThan(20_000);
  });
});
