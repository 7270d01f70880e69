import { describe, expect, it, jest } from '@jest/globals';
import { endWithReader, TERMINAL, textTable } from './command-output.js';

it('ends without a failure where its reader has enough', () => {
  jest.useFakeTimers();
  const exit = jest.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  endWithReader();
  process.stdout.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  jest.runAllTimers();
  expect(exit).toHaveBeenCalledWith(0);
  exit.mockRestore();
  jest.useRealTimers();
});

it.each([
  ['result', 'stdout'],
  ['note', 'stderr'],
] as const)('has no %s with what a terminal obeys', (kind, stream) => {
  const write = jest.spyOn(process[stream], 'write').mockReturnValue(true);
  TERMINAL[kind]('{"a":"\u001b]52;c;\u0007 \u009b2J\u202e\tb"}\nc');
  expect(write.mock.calls).toEqual([[String.raw`{"a":"\u001b]52;c;\u0007 \u009b2J\u202e` + '\tb"}\nc\n']]);
  write.mockRestore();
});

describe('textTable', () => {
  it('aligns columns and leaves no spaces at the end', () => {
    expect(
      textTable([
        ['ID', 'NAME', 'STATE'],
        ['1', 'continuous', ''],
        ['22', 'ci', 'active'],
      ]),
    ).toEqual(['ID  NAME        STATE', '1   continuous', '22  ci          active']);
  });

  it('disarms control characters', () => {
    expect(textTable([['a\u001b[2Jb\nc']])).toEqual(['a\u{fffd}[2Jb\u{fffd}c']);
  });

  it('has no lines for no rows', () => {
    expect(textTable([])).toEqual([]);
  });
});
