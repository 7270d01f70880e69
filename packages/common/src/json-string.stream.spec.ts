import { expect, it } from '@jest/globals';
import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { isText, JsonStringStream } from './json-string.stream.js';

async function jsonOf(bytes: Buffer, chunkSize: number): Promise<Buffer> {
  const chunks = Array.from({ length: Math.ceil(bytes.length / chunkSize) }, (_none, index) =>
    bytes.subarray(index * chunkSize, (index + 1) * chunkSize),
  );
  return await buffer(pipeline(Readable.from(chunks), new JsonStringStream(1_000_000), () => undefined));
}

it.each<[string, Buffer]>([
  ['nothing', Buffer.alloc(0)],
  ['a plain text', Buffer.from('a plain text')],
  ['quotation marks and backslashes', Buffer.from('"a\\b" \\u0041 /')],
  ['control characters', Buffer.from(Array.from({ length: 160 }, (_none, byte) => byte % 128))],
  ['characters of every length', Buffer.from('aé€😀\u2028\ufeff"é€😀')],
  ['a byte order mark at the start', Buffer.from('\ufeffa')],
])('writes %s as a JSON string, however it arrives', async (_name, bytes) => {
  for (const chunkSize of [1, 2, 3, 5, 1_000]) {
    const json = await jsonOf(bytes, chunkSize);
    const text: unknown = JSON.parse(json.toString('utf8'));
    expect(text).toBe(bytes.toString('utf8'));
  }
});

it('is exact for what is UTF-8', async () => {
  const text = 'é"\\\n€😀'.repeat(50_000);
  expect((await jsonOf(Buffer.from(text), 65_536)).toString('utf8')).toBe(JSON.stringify(text));
});

it('fails when the text is too long', async () => {
  await expect(buffer(Readable.from([Buffer.alloc(10)]).pipe(new JsonStringStream(9)))).rejects.toThrow(
    'the text has more than 9 bytes',
  );
});

const NOT_UTF8: [string, Buffer][] = [
  ['bytes that are no UTF-8', Buffer.from([0x61, 0xff, 0x80, 0x62, 0xc3, 0x22])],
  ['an overlong character and half a pair', Buffer.from([0xc0, 0xaf, 0xed, 0xa0, 0x80, 0x61])],
  ['half a character at the end', Buffer.from([0x61, 0xf0, 0x9f, 0x98])],
];

it.each(NOT_UTF8)('fails at %s, however they arrive', async (_name, bytes) => {
  for (const chunkSize of [1, 2, 3, 5, 1_000]) {
    await expect(jsonOf(bytes, chunkSize)).rejects.toThrow('bytes that are not UTF-8');
  }
});

it('knows the beginning of a text', () => {
  expect(NOT_UTF8.map(([, bytes]) => isText(bytes, true))).toEqual([false, false, false]);
  expect(isText(Buffer.from([0x61, 0xf0, 0x9f, 0x98]), false)).toBe(true);
  expect(isText(Buffer.from('a\0'), true)).toBe(false);
  expect(isText(Buffer.alloc(0), true)).toBe(true);
});
