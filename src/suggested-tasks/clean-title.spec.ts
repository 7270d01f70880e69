import { describe, expect, it } from '@jest/globals';
import { cleanTitle } from './clean-title.js';

describe('cleanTitle', () => {
  it.each([
    ['Fix the login', 'Fix the login'],
    ['Fix\r\nthe\u0000 login\u007f', 'Fixthe login'],
    ['\u001b[31mred\u001b[0m', '[31mred[0m'],
    ['  spaces  ', '  spaces  '],
    ['Übergröße 漢字 🎉', 'Übergröße 漢字 🎉'],
    ['', ''],
  ])('%j becomes %j', (given, expected) => {
    expect(cleanTitle(given)).toBe(expected);
  });

  it('keeps at most 256 characters and never half of one', () => {
    expect(cleanTitle('x'.repeat(300))).toBe('x'.repeat(256));
    expect(cleanTitle(`x${'🎉'.repeat(255)}🎉🎉`)).toBe(`x${'🎉'.repeat(255)}`);
  });
});
