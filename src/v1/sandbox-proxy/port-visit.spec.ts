import { describe, expect, it } from '@jest/globals';
import { type PortVisit, readPortVisit } from './port-visit.js';

describe('readPortVisit', () => {
  it.each<[string, Partial<PortVisit>]>([
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
    expect(readPortVisit({ url, method: 'GET', headers: {} }, false)).toMatchObject(expected);
  });

  it.each([
    [false, ['a', 'b']],
    [true, ['c']],
  ])('over TLS (%s) takes only cookies that no other host can set', (isSecure, expected) => {
    const cookie = 'slipway_port=a; x=1; __Host-slipway_port=c;slipway_port=b; slipway_portal=2';
    const visit = readPortVisit({ url: '/', method: 'GET', headers: { cookie } }, isSecure);
    expect(visit.cookies).toEqual(expected);
    expect(visit.otherCookies).toBe('x=1; slipway_portal=2');
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
    expect(readPortVisit({ url: '/', method, headers }, true).isNavigation).toBe(expected);
  });
});
