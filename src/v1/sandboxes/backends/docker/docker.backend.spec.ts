import { expect, it } from '@jest/globals';
import { lastLines, plainLog } from './docker.backend.js';

function frame(stream: number, text: string): Buffer {
  const payload = Buffer.from(text);
  const header = Buffer.alloc(8);
  header.writeUInt8(stream);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

it.each([
  ['', []],
  ['out\nerr\n', [frame(1, 'out\n'), frame(2, 'err\n')]],
  ['gr', [frame(1, 'gr')]],
  // A character that was cut in two.
  ['é', [frame(1, '').subarray(0, 8), frameOf([0xc3]), frameOf([0xa9])]],
  // The engine ended in the middle of a frame.
  ['whole\nha', [frame(1, 'whole\n'), frame(1, 'half\n').subarray(0, 10)]],
  ['whole\n', [frame(1, 'whole\n'), frame(1, 'half\n').subarray(0, 5)]],
])('plainLog gives %j', (expected, frames) => {
  expect(plainLog(Buffer.concat(frames))).toBe(expected);
});

function frameOf(bytes: number[]): Buffer {
  const header = Buffer.from([1, 0, 0, 0, 0, 0, 0, bytes.length]);
  return Buffer.concat([header, Buffer.from(bytes)]);
}

it.each([
  ['short', 10, 'short'],
  ['one\ntwo\nthree\n', 8, 'three\n'],
  ['one\ntwo\nthree', 8, 'three'],
  ['0123456789', 4, '6789'],
  ['0123456789\n', 4, '789\n'],
])('lastLines(%j, %i) is %j', (text, most, expected) => {
  expect(lastLines(text, most)).toBe(expected);
});
