import { imageType } from '@slipway/common/well-formed-text.js';

/** Characters of base64: photographs have pages of other data before their size. */
const HEAD = 262_144;

/** The longest side of an image in pixels, as its head tells; 0 where that does not. */
export function longestSide(base64: string): number {
  const bytes = Buffer.from(base64.slice(0, HEAD), 'base64');
  try {
    return Math.max(...sidesOf(imageType(base64), bytes));
  } catch (error) {
    if (error instanceof RangeError) {
      return 0;
    }
    throw error;
  }
}

/** Of WebP all three forms (RFC 9649), of JPEG the first frame (ITU T.81, B.2.2). @throws RangeError at the end of the head */
function sidesOf(type: string | null, bytes: Buffer): [number, number] {
  switch (type === 'image/webp' ? bytes.toString('latin1', 12, 16) : type) {
    case 'image/png':
      return [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    case 'image/gif':
      return [bytes.readUInt16LE(6), bytes.readUInt16LE(8)];
    case 'VP8X':
      return [bytes.readUIntLE(24, 3) + 1, bytes.readUIntLE(27, 3) + 1];
    case 'VP8L':
      return [(bytes.readUInt16LE(21) & 0x3fff) + 1, ((bytes.readUInt32LE(21) >> 14) & 0x3fff) + 1];
    case 'VP8 ':
      return [bytes.readUInt16LE(26) & 0x3fff, bytes.readUInt16LE(28) & 0x3fff];
  }
  let at = 2;
  while (!/^ffc[0-35-79-bd-f]$/.test(bytes.readUInt16BE(at).toString(16))) {
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return [bytes.readUInt16BE(at + 5), bytes.readUInt16BE(at + 7)];
}
