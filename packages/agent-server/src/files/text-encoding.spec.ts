import { describe, expect, it } from '@jest/globals';
import { decodeText, encodeText, type TextEncoding } from './text-encoding.js';

describe('a text', () => {
  const mark = '\uFEFF';
  it.each<[string, Buffer, TextEncoding | null]>([
    ['ASCII', Buffer.from('plain\n'), 'utf-8'],
    ['UTF-8', Buffer.from('zwölf €\n'), 'utf-8'],
    ['UTF-8 with a mark', Buffer.from(`${mark}zwölf\n`), 'utf-8'],
    ['Latin-1', Buffer.from('zwölf\r\n', 'latin1'), 'windows-1252'],
    ['Windows-1252', Buffer.of(0x80, 0x20, 0x93, 0x61, 0x94, 0x81), 'windows-1252'],
    ['UTF-16 with a mark', Buffer.from(`${mark}zwölf 😀\n`, 'utf16le'), 'utf-16le'],
    ['UTF-16 without one', Buffer.from('zwölf\n', 'utf16le'), 'utf-16le'],
    ['UTF-16 of the other order', Buffer.from(`${mark}zwölf\n`, 'utf16le').swap16(), 'utf-16be'],
    ['the same without a mark', Buffer.from('zwölf\n', 'utf16le').swap16(), 'utf-16be'],
    ['nothing', Buffer.alloc(0), 'utf-8'],
    ['half of a surrogate', Buffer.from([0xff, 0xfe, 0x00, 0xd8]), null],
    ['zeros', Buffer.alloc(10), null],
    ['a program', Buffer.from('\x7FELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0', 'latin1'), null],
    ['bytes without zeros', Buffer.of(1, 2, 0xff, 3), null],
  ])('in %s comes back as it was', (_what, bytes, encoding) => {
    const decoded = decodeText(bytes);
    expect(decoded?.encoding ?? null).toBe(encoding);
    expect(decoded === null ? bytes : encodeText(decoded.text, decoded.encoding)).toEqual(bytes);
  });

  it('of Windows-1252 has its own characters, and no others', () => {
    expect(decodeText(Buffer.of(0x80, 0xe9, 0x93))?.text).toBe('€é“');
    expect(encodeText('€é“', 'windows-1252')).toEqual(Buffer.of(0x80, 0xe9, 0x93));
    expect(encodeText('日', 'windows-1252')).toBeNull();
  });
});
