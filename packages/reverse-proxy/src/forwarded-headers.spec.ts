import type { IncomingHttpHeaders } from 'node:http';
import { expect, it } from '@jest/globals';
import { isSessionCookie } from '../../../src/auth/sessions/session-cookie.js';
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
  [
    'nothing by which a proxy in front has signed the user in',
    {
      accept: 'a',
      cookie: '_oauth2_proxy_0=x; theme=dark; AWSELBAuthSessionCookie-0=y; CF_Authorization=z',
      'set-cookie': ['_oauth2_proxy=planted', 'theme=light'],
      'x-amzn-oidc-data': 'eyJ',
      'x-forwarded-access-token': 'eyJ',
    },
    { accept: 'a', cookie: 'theme=dark', 'set-cookie': ['theme=light'] },
  ],
  [
    "other cookies than the service's session",
    { cookie: 'a=1; slipway_session=ses_x; slipway_sessions=2;slipway_session=y; =slipway_session=z' },
    { cookie: 'a=1; slipway_sessions=2' },
  ],
  [
    'no cookie when the session is the only one',
    { cookie: 'slipway_session=ses_x; __Host-slipway_session=ses_y', accept: 'a' },
    { accept: 'a' },
  ],
  [
    "no cookie that would become the service's session",
    {
      'set-cookie': [
        'slipway_session=evil; Path=/',
        ' slipway_session =evil',
        '=slipway_session=evil',
        'slipway_session; Path=/',
        'mine=slipway_session=1; Path=/',
      ],
    },
    { 'set-cookie': ['mine=slipway_session=1; Path=/'] },
  ],
])('forwards %s', (_, headers, expected) => {
  expect(endToEndHeaders(headers, isSessionCookie)).toEqual(expected);
});
