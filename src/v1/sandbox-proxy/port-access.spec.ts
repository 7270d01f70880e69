import type { OutgoingHttpHeaders } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { portToken } from '../sandboxes/session-key.js';
import { judgePortAccess, proxyToPort, type PortRequest, parsePortRequest } from './port-access.js';

const KEY = 'session-key';
const TOKEN = portToken(KEY);
const ORIGIN = 'https://worker-1-a.apps.example.com';
const SIBLING = 'https://worker-1-b.apps.example.com';

it.each<[string, Partial<PortRequest>, string]>([
  ['no credentials', {}, 'unauthorized'],
  ['the token', { token: TOKEN }, 'granted'],
  ['the key', { key: KEY }, 'granted'],
  ['the key as the token', { token: KEY }, 'granted'],
  ['an empty token', { token: '' }, 'unauthorized'],
  ['the cookie', { cookies: [TOKEN] }, 'granted'],
  ['the cookie after one that another page set', { cookies: ['x', TOKEN] }, 'granted'],
  ['wrong cookies', { cookies: ['x', ''] }, 'unauthorized'],
  ['the cookie, from its own page', { cookies: [TOKEN], site: 'same-origin', origin: ORIGIN }, 'granted'],
  ['the cookie, after the user typed the address', { cookies: [TOKEN], site: 'none' }, 'granted'],
  [
    'the cookie, from a link on another site',
    { cookies: [TOKEN], site: 'cross-site', isNavigation: true },
    'granted',
  ],
  ['the cookie, from a page of another sandbox', { cookies: [TOKEN], site: 'same-site' }, 'cross-site'],
  ['the cookie, from a page elsewhere', { cookies: [TOKEN], site: 'cross-site' }, 'cross-site'],
  ['the cookie, from an older browser, another origin', { cookies: [TOKEN], origin: SIBLING }, 'cross-site'],
  ['the cookie, from an older browser, its own origin', { cookies: [TOKEN], origin: ORIGIN }, 'granted'],
  [
    'the cookie, from a page that hides its origin',
    { cookies: [TOKEN], site: 'same-origin', origin: 'null' },
    'granted',
  ],
  ['a wrong cookie, from a page elsewhere', { cookies: ['x'], site: 'cross-site' }, 'unauthorized'],
  ['the token, from a page elsewhere', { token: TOKEN, site: 'cross-site' }, 'granted'],
])('judges a request with %s', (_, presented, expected) => {
  const request: PortRequest = {
    url: '/',
    token: null,
    key: null,
    cookies: [],
    otherCookies: '',
    origin: null,
    site: null,
    isNavigation: false,
    acceptsPage: false,
    ...presented,
  };
  expect(judgePortAccess(request, KEY, ORIGIN)).toBe(expected);
});

const INNER = 'http://127.0.0.1:20001';
const proxied = proxyToPort(INNER, ORIGIN, { url: '/x', otherCookies: 'a=1' });

it.each<[string, OutgoingHttpHeaders, object]>([
  [
    'without what opened the port',
    { 'x-session-api-key': 'k', cookie: 'slipway_port=t; a=1' },
    { cookie: 'a=1' },
  ],
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
  ['without other addresses of the port', { 'x-forwarded-host': 'a', 'x-forwarded-proto': 'https' }, {}],
  ['with everything else', { authorization: 'Basic x' }, { authorization: 'Basic x' }],
])('rewrites request headers: %s', (_, headers, expected) => {
  proxied.rewriteRequestHeaders(headers);
  expect(headers).toEqual({ cookie: 'a=1', ...expected });
});

it.each<[string, OutgoingHttpHeaders, object]>([
  ['a redirect of its own', { location: `${INNER}/p` }, { location: `${ORIGIN}/p` }],
  ['a redirect of its own to TLS', { location: 'https://127.0.0.1:20001/p' }, { location: `${ORIGIN}/p` }],
  ['a relative redirect', { location: '/p' }, { location: '/p' }],
  ['a redirect elsewhere', { location: `${INNER}0/p` }, { location: `${INNER}0/p` }],
  ['the allowed origin', { 'access-control-allow-origin': INNER }, { 'access-control-allow-origin': ORIGIN }],
  [
    'cookies of this port only',
    { 'set-cookie': ['a=1; Domain=example.com; Path=/', 'b=2;DOMAIN = x'] },
    { 'set-cookie': ['a=1; Path=/', 'b=2'] },
  ],
  [
    'without what concerns other sites',
    { 'clear-site-data': '"*"', 'strict-transport-security': 'max-age=1' },
    {},
  ],
])('rewrites response headers: %s', (_, headers, expected) => {
  proxied.rewriteResponseHeaders(headers);
  expect(headers).toEqual(expected);
});

describe('parsePortRequest', () => {
  it.each<[string, Partial<PortRequest>]>([
    ['/', { url: '/', token: null }],
    ['/a%2F../b?x=%20&y', { url: '/a%2F../b?x=%20&y', token: null }],
    ['/a?slipway_token=t', { url: '/a', token: 't' }],
    ['/a?x=1&slipway_token=t=u&y=2', { url: '/a?x=1&y=2', token: 't=u' }],
    ['/a?slipway_token=t&slipway_token=u', { url: '/a', token: 't' }],
    ['/a?my_slipway_token=t&slipway_token', { url: '/a?my_slipway_token=t', token: 'slipway_token' }],
    ['/a?x=?slipway_token=t', { url: '/a?x=?slipway_token=t', token: null }],
    ['http://elsewhere/x', { url: '/', token: null }],
    ['*', { url: '/', token: null }],
  ])('%s', (url, expected) => {
    expect(parsePortRequest({ url, method: 'GET', headers: {} }, false)).toMatchObject(expected);
  });

  it.each([
    [false, ['a', 'b']],
    [true, ['c']],
  ])('over TLS (%s) accepts only cookies that no other host can set', (isSecure, expected) => {
    const cookie = 'slipway_port=a; x=1; __Host-slipway_port=c;slipway_port=b; slipway_portal=2';
    const request = parsePortRequest({ url: '/', method: 'GET', headers: { cookie } }, isSecure);
    expect(request.cookies).toEqual(expected);
    expect(request.otherCookies).toBe('x=1; slipway_portal=2');
  });

  it.each([
    ['GET', 'navigate', undefined, true],
    ['GET', 'navigate', 'document', true],
    ['GET', 'navigate', 'iframe', false],
    ['GET', 'navigate', 'object', false],
    ['HEAD', 'navigate', 'document', true],
    ['POST', 'navigate', 'document', false],
    ['GET', 'cors', 'empty', false],
  ])('%s with Sec-Fetch-Mode %s and -Dest %s is a navigation: %s', (method, mode, dest, expected) => {
    const headers = { 'sec-fetch-mode': mode, ...(dest !== undefined && { 'sec-fetch-dest': dest }) };
    expect(parsePortRequest({ url: '/', method, headers }, true).isNavigation).toBe(expected);
  });
});
