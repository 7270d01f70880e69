import type { OutgoingHttpHeaders } from 'node:http';
import { expect, it } from '@jest/globals';
import { portPassage } from './port-passage.js';

const INNER = 'http://127.0.0.1:20001';
const ORIGIN = 'https://worker-1-a.apps.example.com';
const passage = portPassage(INNER, ORIGIN, { url: '/x', otherCookies: 'a=1' });

it.each<[string, OutgoingHttpHeaders, object]>([
  ['what opened the port', { 'x-session-api-key': 'k', cookie: 'slipway_port=t; a=1' }, { cookie: 'a=1' }],
  [
    'its own origin',
    { origin: ORIGIN, referer: `${ORIGIN}/p?q` },
    { origin: INNER, referer: `${INNER}/p?q` },
  ],
  [
    "another's origin",
    { origin: `${ORIGIN}.evil`, referer: 'https://b/' },
    { origin: `${ORIGIN}.evil`, referer: 'https://b/' },
  ],
  ['no other address of it', { 'x-forwarded-host': 'a', 'x-forwarded-proto': 'https' }, {}],
  ['what else there is', { authorization: 'Basic x' }, { authorization: 'Basic x' }],
])('tells the program: %s', (_, headers, expected) => {
  passage.toProgram(headers);
  expect(headers).toEqual({ cookie: 'a=1', ...expected });
});

it.each<[string, OutgoingHttpHeaders, object]>([
  ['a redirect of its own', { location: `${INNER}/p` }, { location: `${ORIGIN}/p` }],
  ['a redirect of its own to TLS', { location: 'https://127.0.0.1:20001/p' }, { location: `${ORIGIN}/p` }],
  ['a relative redirect', { location: '/p' }, { location: '/p' }],
  ['a redirect elsewhere', { location: `${INNER}0/p` }, { location: `${INNER}0/p` }],
  ['whom it answers', { 'access-control-allow-origin': INNER }, { 'access-control-allow-origin': ORIGIN }],
  [
    'cookies of this port only',
    { 'set-cookie': ['a=1; Domain=example.com; Path=/', 'b=2;DOMAIN = x'] },
    { 'set-cookie': ['a=1; Path=/', 'b=2'] },
  ],
  ['nothing of others', { 'clear-site-data': '"*"', 'strict-transport-security': 'max-age=1' }, {}],
])('tells the client: %s', (_, headers, expected) => {
  passage.toClient(headers);
  expect(headers).toEqual(expected);
});
