import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { EchoMask } from './echo-mask.js';

function masked(mask: EchoMask, chunks: readonly string[]): string {
  return Buffer.concat([...chunks.map((chunk) => mask.push(Buffer.from(chunk))), mask.flush()]).toString();
}

describe('EchoMask', () => {
  it.each<[string, string[], string]>([
    ['nothing', ['abc'], 'abc'],
    ['within a chunk', ['a secret-value b'], 'a PLACEHOLDER! b'],
    ['several', ['secret-value', 'secret-valuesecret-value'], 'PLACEHOLDER!PLACEHOLDER!PLACEHOLDER!'],
    ['over a border', ['a secr', 'et-val', 'ue b'], 'a PLACEHOLDER! b'],
    ['byte by byte', 'xsecret-valuey'.split(''), 'xPLACEHOLDER!y'],
    ['a beginning alone', ['secret-', 'other'], 'secret-other'],
    ['a beginning at the end', ['secret-val'], 'secret-val'],
    ['a beginning in a beginning', ['secret-vsecret-', 'value'], 'secret-vPLACEHOLDER!'],
    ['a longer one that begins alike', ['secret-value-two'], 'PLACEHOLDER-2!!!'],
    ['that over a border where the other ends', ['secret-value', '-two'], 'PLACEHOLDER-2!!!'],
    ['the shorter one that only seemed longer', ['secret-value', '-t', 'o'], 'PLACEHOLDER!-to'],
    ['the shorter one at the end', ['a secret-value'], 'a PLACEHOLDER!'],
  ])('%s', (_what, chunks, result) => {
    const mask = new EchoMask([
      { sent: 'secret-value', shown: 'PLACEHOLDER!' },
      { sent: 'secret-value-two', shown: 'PLACEHOLDER-2!!!' },
    ]);
    expect(masked(mask, chunks)).toBe(result);
  });

  it('takes no longer where a value and a response repeat themselves', () => {
    const half = 'ab'.repeat(64_000);
    const mask = new EchoMask([{ sent: `${half}!${half}`, shown: 'PLACEHOLDER!' }]);
    const text = `${'ab'.repeat(2 ** 22)}!${half}`;
    const result = `${'ab'.repeat(2 ** 22 - 64_000)}PLACEHOLDER!`;
    expect(masked(mask, [text]) === result).toBe(true);
    expect(mask.text(text) === result).toBe(true);
  });

  it('does not compare all of a long beginning again with each byte', () => {
    const mask = new EchoMask([{ sent: `${'ab'.repeat(4_000)}!`, shown: 'PLACEHOLDER!' }]);
    const concat = jest.spyOn(Buffer, 'concat');
    const result = masked(mask, `${'ab'.repeat(6_000)}!x`.split(''));
    const copied = concat.mock.results.reduce((sum, { value }) => sum + (value as Buffer).length, 0);
    concat.mockRestore();
    expect(result).toBe(`${'ab'.repeat(2_000)}PLACEHOLDER!x`);
    expect(copied).toBeLessThan(2_000_000);
  });

  it('lets what is no value after a long beginning go on when nothing follows', () => {
    const begun = 'ab'.repeat(1_000);
    const mask = new EchoMask([{ sent: `${begun}!`, shown: 'PLACEHOLDER!' }]);
    const given = [begun, '?', 'c'].map((chunk) => mask.push(Buffer.from(chunk)));
    expect([...given, mask.release(), mask.release()].map(String)).toEqual(['', '', '', `${begun}?c`, '']);
    expect(masked(mask, [begun, '!'])).toBe('PLACEHOLDER!');
  });

  it('gives the same for every way to cut a text', () => {
    // Begin alike, stand in one another, and are longer than what they are found by.
    const long = 'ab'.repeat(15);
    const values = ['aab', 'aabaac', 'baa', `${long}c`, `${long}aab`, `x${long}`];
    const piece = fc.constantFrom(...values, 'aaab', 'a', 'b', 'c', 'aaba', long);
    const expected = new RegExp(values.toSorted((a, b) => b.length - a.length).join('|'), 'g');
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 12 }),
        fc.array(fc.nat(60), { maxLength: 6 }),
        (pieces, cuts) => {
          const text = pieces.join('');
          const at = [...new Set([0, ...cuts.filter((cut) => cut < text.length), text.length])].toSorted(
            (a, b) => a - b,
          );
          const chunks = at.slice(1).map((end, index) => text.slice(at[index], end));
          const mask = new EchoMask(values.map((sent, index) => ({ sent, shown: `<${index}>` })));
          const result = text.replaceAll(expected, (sent) => `<${values.indexOf(sent)}>`);
          expect(masked(mask, chunks)).toBe(result);
          expect(mask.text(text)).toBe(result);
        },
      ),
      { seed: 46, numRuns: 1_000 },
    );
  });

  it.each<[string, string[], string[]]>([
    ['few bytes', ['it is', ' done'], ['it i', 's', ' done']],
    ['few bytes of a value', ['it is', 'ecret-value'], ['it i', 's', 'LACEHOLDER!']],
    ['few bytes twice', ['s', 's', 'e', 'x'], ['', 's', '', 's', '', 'e', 'x']],
    ['more bytes', ['secre', 't-value'], ['', '', 'PLACEHOLDER!']],
    ['more bytes in two steps', ['se', 'cret', '-value'], ['', 'se', '', '', 'ACEHOLDER!']],
  ])('lets %s go on when nothing follows', (_what, chunks, results) => {
    const mask = new EchoMask([{ sent: 'secret-value', shown: 'PLACEHOLDER!' }]);
    const given = chunks.flatMap((chunk, index) =>
      index < chunks.length - 1
        ? [mask.push(Buffer.from(chunk)), mask.release()]
        : [mask.push(Buffer.from(chunk))],
    );
    expect(given.map(String)).toEqual(results);
    expect(String(mask.flush())).toBe('');
  });

  it('holds back no more than the longest value', () => {
    const mask = new EchoMask([{ sent: 'secret-value', shown: 'P' }]);
    mask.push(Buffer.from('secret-valu'.repeat(1_000)));
    expect(mask.heldLength).toBe(11);
  });

  it('knows whether lengths stay', () => {
    const mask = new EchoMask([
      { sent: 'abcd', shown: 'dcba' },
      { sent: 'xyz', shown: 'longer' },
    ]);
    expect([mask.keepsLength, mask.ofSameLength.keepsLength, mask.ofSameLength.text('abcd xyz')]).toEqual([
      false,
      true,
      'dcba xyz',
    ]);
  });
});
