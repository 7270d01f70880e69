import { describe, expect, it } from '@jest/globals';
import { UpstreamError, type UpstreamReason } from '../common/http/upstream-error.js';
import { GitProviderError } from './git-provider.js';
import { combinedError, providerErrorFromResponse, providerErrorFromUpstream } from './provider-errors.js';

/** 2026-11-21T12:00:00Z, in epoch milliseconds; rate limit resets are epoch seconds. */
const NOW = Date.UTC(2026, 10, 21, 12);
const NOW_SECONDS = NOW / 1000;

describe('providerErrorFromResponse', () => {
  it.each<[string, number, Record<string, string>, string, string | null, number | null]>([
    ['success', 200, {}, '', null, null],
    ['success with an exhausted limit', 200, { 'x-ratelimit-remaining': '0' }, '', null, null],
    ['not modified', 304, {}, '', null, null],
    ['bad request', 400, {}, '', null, null],
    ['rejected token', 401, {}, '', 'unauthorized', null],
    [
      'missing permission',
      403,
      { 'x-ratelimit-remaining': '4999' },
      'Resource not accessible',
      'insufficient_scope',
      null,
    ],
    [
      'GitHub primary limit',
      403,
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW_SECONDS + 40) },
      '',
      'rate_limited',
      41,
    ],
    [
      'primary limit whose reset has passed',
      403,
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW_SECONDS - 40) },
      '',
      'rate_limited',
      1,
    ],
    ['primary limit without reset', 403, { 'x-ratelimit-remaining': '0' }, '', 'rate_limited', 60],
    [
      'unreadable reset',
      403,
      { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'soon' },
      '',
      'rate_limited',
      60,
    ],
    ['403 with Retry-After', 403, { 'retry-after': '30' }, '', 'rate_limited', 30],
    ['secondary limit', 403, {}, 'You have exceeded a secondary rate limit.', 'rate_limited', 60],
    [
      'secondary limit with Retry-After',
      403,
      { 'retry-after': '7' },
      'secondary rate limit',
      'rate_limited',
      7,
    ],
    [
      'page of a guard in front of the API',
      403,
      {},
      '<!DOCTYPE html><html><title>Just a moment...</title>',
      'blocked_by_policy',
      null,
    ],
    ['404', 404, {}, '', null, null],
    ['request timeout', 408, {}, '', 'timeout', null],
    ['removed endpoint', 410, {}, '', 'unsupported', null],
    ['429 in seconds', 429, { 'retry-after': '12' }, '', 'rate_limited', 12],
    ['429 with zero', 429, { 'retry-after': '0' }, '', 'rate_limited', 1],
    ['429 as a date', 429, { 'retry-after': 'Sat, 21 Nov 2026 12:00:25 GMT' }, '', 'rate_limited', 25],
    ['429 with a past date', 429, { 'retry-after': 'Sat, 21 Nov 2026 11:00:00 GMT' }, '', 'rate_limited', 1],
    ['429 with nonsense', 429, { 'retry-after': 'later' }, '', 'rate_limited', 60],
    ['429 without a time', 429, {}, '', 'rate_limited', 60],
    [
      'GitLab limit',
      429,
      { 'ratelimit-remaining': '0', 'ratelimit-reset': String(NOW_SECONDS + 9) },
      '',
      'rate_limited',
      10,
    ],
    [
      'Retry-After before reset',
      429,
      { 'retry-after': '3', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW_SECONDS + 99) },
      '',
      'rate_limited',
      3,
    ],
    ['server error', 500, {}, '', 'unavailable', null],
    ['bad gateway', 502, {}, '<html>', 'unavailable', null],
    ['maintenance', 503, { 'retry-after': '120' }, '', 'unavailable', 120],
  ])('%s', (_name, status, headers, body, code, retryAfter) => {
    const head = { status, headers: new Headers(headers) };
    const error = providerErrorFromResponse(head, NOW, { text: body, token: 'glpat-secret' });

    expect(error?.code ?? null).toBe(code);
    expect(error?.retryAfterSeconds ?? null).toBe(retryAfter);
  });
});

describe('providerErrorFromUpstream', () => {
  it.each<[UpstreamReason, string]>([
    ['timeout', 'timeout'],
    ['network', 'unavailable'],
    ['too_large', 'unavailable'],
    ['refused', 'unavailable'],
    ['redirect', 'unavailable'],
    ['malformed', 'unavailable'],
    ['share', 'rate_limited'],
  ])('%s becomes %s and keeps the cause', (reason, code) => {
    const cause = new UpstreamError(reason, 'https://git.example.com');

    expect(providerErrorFromUpstream(cause)).toMatchObject({ code, cause });
  });

  it("says what is in the way of a connection, and nothing of the server's own trouble", () => {
    const advice = 'the proxy answered 407: HTTPS_PROXY needs the right user and password';
    const failed = (options: object) => new UpstreamError('network', 'https://git.example.com', options);

    expect(providerErrorFromUpstream(failed({ advice })).said).toBe(advice);
    expect(providerErrorFromUpstream(failed({ cause: new Error('ECONNRESET') })).said).toBeNull();
  });

  it('hands a provider error back as it is', () => {
    const error = new GitProviderError('sso_required');

    expect(providerErrorFromUpstream(error)).toBe(error);
  });

  it("looks through a library's wrapper and drops it", () => {
    const cause = new UpstreamError('timeout', 'https://api.github.com');
    const wrapper = new Error('https://api.github.com/secret failed', { cause });

    expect(providerErrorFromUpstream(wrapper)).toMatchObject({ code: 'timeout', cause });
  });

  it.each([
    ['an abort', new DOMException('aborted', 'AbortError'), 'timeout'],
    ['a timeout signal', new DOMException('timed out', 'TimeoutError'), 'timeout'],
    ['anything else', new Error('surprise'), 'unavailable'],
    ['something that is no error', 'surprise', 'unavailable'],
  ])('%s', (_name, error, code) => {
    expect(providerErrorFromUpstream(error)).toMatchObject({ code, cause: error });
  });
});

const unauthorized = new GitProviderError('unauthorized');
const limited = new GitProviderError('rate_limited', { retryAfterSeconds: 41 });
const late = new UpstreamError('timeout', 'https://git.example.com');

describe('combinedError', () => {
  it.each([
    ['the first', [limited, late], 'rate_limited', 41],
    ['the first', [late, limited], 'timeout', null],
    ['a rejection', [limited, unauthorized], 'unauthorized', null],
  ])('speaks as %s of %j', (_name, reasons, code, retryAfterSeconds) => {
    expect(combinedError(reasons)).toMatchObject({ code, retryAfterSeconds });
  });

  it('keeps every reason', () => {
    expect(combinedError([limited, unauthorized]).cause).toMatchObject({ errors: [limited, unauthorized] });
  });
});
