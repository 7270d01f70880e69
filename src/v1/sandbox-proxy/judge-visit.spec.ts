import { expect, it } from '@jest/globals';
import { portToken } from '../sandboxes/port-token.js';
import { judgeVisit } from './judge-visit.js';
import type { PortVisit } from './port-visit.js';

const KEY = 'session-key';
const TOKEN = portToken(KEY);
const ORIGIN = 'https://worker-1-a.apps.example.com';
const SIBLING = 'https://worker-1-b.apps.example.com';

it.each<[string, Partial<PortVisit>, string]>([
  ['nothing', {}, 'closed'],
  ['the token', { token: TOKEN }, 'open'],
  ['the key', { key: KEY }, 'open'],
  ['the key as the token', { token: KEY }, 'open'],
  ['an empty token', { token: '' }, 'closed'],
  ['the cookie', { cookies: [TOKEN] }, 'open'],
  ["the cookie behind another page's", { cookies: ['x', TOKEN] }, 'open'],
  ['wrong cookies', { cookies: ['x', ''] }, 'closed'],
  ['the cookie, from its own page', { cookies: [TOKEN], site: 'same-origin', origin: ORIGIN }, 'open'],
  ['the cookie, typed by the user', { cookies: [TOKEN], site: 'none' }, 'open'],
  ['the cookie, by a link elsewhere', { cookies: [TOKEN], site: 'cross-site', isNavigation: true }, 'open'],
  ['the cookie, from a page of another sandbox', { cookies: [TOKEN], site: 'same-site' }, 'foreign'],
  ['the cookie, from a page elsewhere', { cookies: [TOKEN], site: 'cross-site' }, 'foreign'],
  ['the cookie, from an older browser, another origin', { cookies: [TOKEN], origin: SIBLING }, 'foreign'],
  ['the cookie, from an older browser, its own origin', { cookies: [TOKEN], origin: ORIGIN }, 'open'],
  [
    'the cookie, from a page that hides its origin',
    { cookies: [TOKEN], site: 'same-origin', origin: 'null' },
    'open',
  ],
  ['a wrong cookie, from a page elsewhere', { cookies: ['x'], site: 'cross-site' }, 'closed'],
  ['the token, from a page elsewhere', { token: TOKEN, site: 'cross-site' }, 'open'],
])('with %s', (_, presented, expected) => {
  const visit: PortVisit = {
    url: '/',
    token: null,
    key: null,
    cookies: [],
    otherCookies: '',
    origin: null,
    site: null,
    isNavigation: false,
    isPage: false,
    ...presented,
  };
  expect(judgeVisit(visit, KEY, ORIGIN)).toBe(expected);
});
