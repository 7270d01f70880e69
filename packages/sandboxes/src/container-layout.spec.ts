import { expect, it } from '@jest/globals';
import { demultiplexLog, explainIncompatibleImage, lastLines } from './container-layout.js';

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
  // A character split across two frames.
  ['é', [frame(1, '').subarray(0, 8), frameOf([0xc3]), frameOf([0xa9])]],
  // A log that ends in the middle of a frame.
  ['whole\nha', [frame(1, 'whole\n'), frame(1, 'half\n').subarray(0, 10)]],
  ['whole\n', [frame(1, 'whole\n'), frame(1, 'half\n').subarray(0, 5)]],
])('demultiplexLog gives %j', (expected, frames) => {
  expect(demultiplexLog(Buffer.concat(frames))).toBe(expected);
});

it('reads a log of very many frames', () => {
  const lines = 'x\n'.repeat(100_000);
  const log = Buffer.concat(Array.from({ length: 100_000 }, () => frame(1, 'x\n')));
  expect(demultiplexLog(log)).toBe(lines);
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
])('lastLines(%j, %i) is %j', (text, maxCharacters, expected) => {
  expect(lastLines(text, maxCharacters)).toBe(expected);
});

const NODE = '/opt/slipway/bin/node';

// The messages of Debian's engine, of its init and of glibc's loader.
it.each([
  [
    `[FATAL tini (6)] exec ${NODE} failed: No such file or directory`,
    'it has no glibc (Alpine has musl instead)',
  ],
  [`[FATAL tini (7)] exec ${NODE} failed: Exec format error`, 'it is for another kind of processor'],
  [
    `${NODE}: error while loading shared libraries: libstdc++.so.6: cannot open shared object file: No such file or directory`,
    'it lacks libstdc++.so.6',
  ],
  [
    `${NODE}: /lib64/libc.so.6: version \`GLIBC_2.27' not found (required by ${NODE})\n${NODE}: /lib64/libc.so.6: version \`GLIBC_2.28' not found (required by ${NODE})`,
    'its libraries are too old, they lack GLIBC_2.27',
  ],
])('explains %j', (log, reason) => {
  expect(explainIncompatibleImage(`${log}\n`, 'a:1')).toContain(
    `The image a:1 cannot run our agent server: ${reason}. It takes`,
  );
});

it.each(['', 'listening on 8000\n', 'python: error while loading shared libraries: libz.so.1\n'])(
  'does not blame the image for %j',
  (log) => {
    expect(explainIncompatibleImage(log, 'a:1')).toBeNull();
  },
);
