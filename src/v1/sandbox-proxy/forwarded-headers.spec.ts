import type { IncomingHttpHeaders } from 'node:http';
import { expect, it } from '@jest/globals';
import { endToEndHeaders } from './forwarded-headers.js';

it.each<[string, IncomingHttpHeaders, object]>([
  [
    'headers for the program',
    { accept: '*/*', 'set-cookie': ['a', 'b'] },
    { accept: '*/*', 'set-cookie': ['a', 'b'] },
  ],
  [
    'no headers that are for the connection',
    {
      connection: 'keep-alive',
      'keep-alive': 'timeout=5',
      te: 'trailers',
      trailer: 'X',
      upgrade: 'h2c',
      accept: 'a',
    },
    { accept: 'a' },
  ],
  ['no framing', { 'transfer-encoding': 'chunked', 'content-length': '1' }, { 'content-length': '1' }],
  [
    'the length even when Connection names it',
    { connection: 'content-length', 'content-length': '1' },
    { 'content-length': '1' },
  ],
  [
    'no headers that Connection names',
    { connection: 'close, X-Mine', 'x-mine': '1', 'x-yours': '2' },
    { 'x-yours': '2' },
  ],
])('forwards %s', (_, headers, expected) => {
  expect(endToEndHeaders(headers)).toEqual(expected);
});
