import { describe, expect, it } from '@jest/globals';
import { connectionProblem, errorWithCauses } from './error-message.js';

describe('errorWithCauses', () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:9'), { code: 'ECONNREFUSED' });
  const twoAttempts = Object.assign(new AggregateError([refused, new Error('connect EHOSTUNREACH ::1:9')]), {
    code: 'ECONNREFUSED',
  });
  const circle = new Error('round');
  circle.cause = new Error('and round', { cause: circle });

  it.each<[unknown, string]>([
    [new Error('alone'), 'alone'],
    ['a text', 'a text'],
    [new TypeError('fetch failed', { cause: refused }), 'fetch failed: connect ECONNREFUSED 127.0.0.1:9'],
    [
      new TypeError('fetch failed', { cause: twoAttempts }),
      'fetch failed: ECONNREFUSED: connect ECONNREFUSED 127.0.0.1:9: connect EHOSTUNREACH ::1:9',
    ],
    [new Error('outer: inner', { cause: new Error('inner') }), 'outer: inner'],
    [new Error('outer', { cause: { code: 7 } }), 'outer'],
    [circle, 'round: and round'],
  ])('of %p is %p', (error, text) => {
    expect(errorWithCauses(error)).toBe(text);
  });
});

describe('connectionProblem', () => {
  /** As `fetch` throws them. */
  const fetchFailed = (message: string, code: string): Error =>
    new TypeError('fetch failed', {
      cause: new Error('Request was cancelled.', { cause: Object.assign(new Error(message), { code }) }),
    });

  const tunnel = (status: number) => `Proxy response (${status}) !== 200 when HTTP Tunneling`;
  const VIA = 'Failed to establish tunnel to a.example:443 via http://10.0.0.8:3128/: HTTP/1.1 407 Required';
  it.each([
    [tunnel(407), 'UND_ERR_ABORTED', 'the proxy answered 407: HTTPS_PROXY'],
    [tunnel(403), 'UND_ERR_ABORTED', 'the proxy answered 403: .*NO_PROXY'],
    [VIA, 'ERR_PROXY_TUNNEL', 'the proxy answered 407'],
    [tunnel(503), 'UND_ERR_ABORTED', 'answered 503: it cannot reach'],
    ['unable to verify the first certificate', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'NODE_EXTRA_CA_CERTS'],
    ['self-signed certificate in certificate chain', 'SELF_SIGNED_CERT_IN_CHAIN', 'NODE_EXTRA_CA_CERTS'],
    ['self-signed certificate', 'DEPTH_ZERO_SELF_SIGNED_CERT', 'NODE_EXTRA_CA_CERTS'],
  ])('of %j says what to do', (message, code, expected) => {
    const error = fetchFailed(message, code);
    expect(connectionProblem(error)).toMatch(new RegExp(expected));
    expect(errorWithCauses(error)).toMatch(new RegExp(`${expected}.*$`));
  });

  it.each([
    fetchFailed('certificate has expired', 'CERT_HAS_EXPIRED'),
    fetchFailed('connect ECONNREFUSED 127.0.0.1:9', 'ECONNREFUSED'),
    'a text',
    undefined,
  ])('of %p is nothing', (error) => {
    expect(connectionProblem(error)).toBeNull();
  });
});
