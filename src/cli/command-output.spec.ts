import { describe, expect, it } from '@jest/globals';
import { textTable } from './command-output.js';

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
