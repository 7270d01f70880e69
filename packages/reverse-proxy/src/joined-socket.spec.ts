import { describe, expect, it } from '@jest/globals';
import { FrameBoundaries } from './joined-socket.js';

/** A frame with a header as in RFC 6455, and a payload of zeros. */
function frame(length: number, { masked = false } = {}): Buffer {
  const mask = masked ? 0x80 : 0;
  const header =
    length < 126
      ? [0x82, mask | length]
      : length < 65_536
        ? [0x82, mask | 126, length >> 8, length & 255]
        : [0x82, mask | 127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 255, length & 255];
  return Buffer.concat([Buffer.from(header), Buffer.alloc(masked ? 4 : 0), Buffer.alloc(length)]);
}

describe('FrameBoundaries', () => {
  it.each([
    ['empty', frame(0)],
    ['empty and masked', frame(0, { masked: true })],
    ['short', frame(125)],
    ['long enough for a length of two bytes', frame(126)],
    ['long enough for a length of two bytes, masked', frame(65_535, { masked: true })],
    ['long enough for a length of eight bytes', frame(65_536)],
    ['long enough for a length of eight bytes, masked', frame(70_000, { masked: true })],
  ])('finds the end of a frame that is %s, in chunks of any size', (_what, bytes) => {
    for (const size of [1, 3, 4096, bytes.length]) {
      const boundaries = new FrameBoundaries();
      const ends: number[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        boundaries.pass(bytes.subarray(at, at + size));
        if (boundaries.isAtBoundary) {
          ends.push(Math.min(at + size, bytes.length));
        }
      }

      expect(ends).toEqual([bytes.length]);
    }
  });

  it('finds the end of a frame between others', () => {
    const boundaries = new FrameBoundaries();
    const bytes = Buffer.concat([frame(10), frame(200), frame(3)]);

    expect(boundaries.passToBoundary(bytes)).toBe(12);
    boundaries.pass(bytes.subarray(12, 20));
    expect(boundaries.isAtBoundary).toBe(false);
    expect(boundaries.passToBoundary(bytes.subarray(20))).toBe(204 - 8);
    expect(boundaries.passToBoundary(bytes.subarray(216, 219))).toBeNull();
    expect(boundaries.passToBoundary(bytes.subarray(219))).toBe(2);
  });

  it('finds no end in a frame of the greatest length', () => {
    const boundaries = new FrameBoundaries();
    boundaries.pass(Buffer.from([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]));

    expect(boundaries.passToBoundary(Buffer.alloc(100_000))).toBeNull();
  });
});
