import { describe, expect, it } from '@jest/globals';
import { UpstreamError, type UpstreamReason } from '@slipway/common/http/upstream-error.js';
import { GitProviderError } from './git-provider.js';
import { combinedError, providerErrorFromResponse, providerErrorFromUpstream } from './provider-errors.js';

/** 2026-11-21T12:00:00Z, in epoch milliseconds; rate limit resets are epoch seconds. */
const NOW = Date.UTC(2026, 10, 21, 12);
const NOW_SECONDS = NOW / 1000;

/** The headers of a limit that is used up, until then. */
function usedUp(reset?: number | string): Record<string, string> {
  return { 'x-ratelimit-remaining': '0', ...(reset !== undefined && { 'x-ratelimit-reset': `${reset}` }) };
}

function after(text: string): Record<string, string> {
  return { 'retry-after': text };
}

const GITLAB_LIMIT = { 'ratelimit-remaining': '0', 'ratelimit-reset': String(NOW_SECONDS + 9) };
const GUARD = '<!DOCTYPE html><html><title>Just a moment...</title>';

describe('providerErrorFromResponse', () => {
  it.each<[string, number, Record<string, string>, string, string | null, number | null]>([
    ['success', 200, {}, '', null, null],
    ['success with an exhausted limit', 200, usedUp(), '', null, null],
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
    ['GitHub primary limit', 403, usedUp(NOW_SECONDS + 40), '', 'rate_limited', 41],
    ['primary limit whose reset has passed', 403, usedUp(NOW_SECONDS - 40), '', 'rate_limited', 1],
    ['primary limit without reset', 403, usedUp(), '', 'rate_limited', 60],
    ['unreadable reset', 403, usedUp('soon'), '', 'rate_limited', 60],
    ['403 with Retry-After', 403, after('30'), '', 'rate_limited', 30],
    ['secondary limit', 403, {}, 'You have exceeded a secondary rate limit.', 'rate_limited', 60],
    ['secondary limit with Retry-After', 403, after('7'), 'secondary rate limit', 'rate_limited', 7],
    ['page of a guard in front of the API', 403, {}, GUARD, 'blocked_by_policy', null],
    ['404', 404, {}, '', null, null],
    ['request timeout', 408, {}, '', 'timeout', null],
    ['removed endpoint', 410, {}, '', 'unsupported', null],
    ['429 in seconds', 429, after('12'), '', 'rate_limited', 12],
    ['429 with zero', 429, after('0'), '', 'rate_limited', 1],
    ['429 as a date', 429, after('Sat, 21 Nov 2026 12:00:25 GMT'), '', 'rate_limited', 25],
    ['429 with a past date', 429, after('Sat, 21 Nov 2026 11:00:00 GMT'), '', 'rate_limited', 1],
    ['429 with nonsense', 429, after('later'), '', 'rate_limited', 60],
    ['429 without a time', 429, {}, '', 'rate_limited', 60],
    ['GitLab limit', 429, GITLAB_LIMIT, '', 'rate_limited', 10],
    ['both', 429, { ...after('3'), ...usedUp(NOW_SECONDS + 99) }, '', 'rate_limited', 3],
    ['server error', 500, {}, '', 'unavailable', null],
    ['bad gateway', 502, {}, '<html>', 'unavailable', null],
    ['maintenance', 503, after('120'), '', 'unavailable', 120],
  ])('%s', (_name, status, headers, body, code, retryAfter) => {
    const head = { status, headers: new Headers(headers) };
    const error = providerErrorFromResponse(head, NOW, { text: body, token: 'glpat-secret' });

    expect(error?.code ?? null).toBe(code);
    expect(error?.retryAfterSeconds ?? null).toBe(retryAfter);
  });
});

// renovatebot/renovate#20253, aquasecurity/trivy#10567, github/github-mcp-server#748, dlang/dub-registry#343,
// gitpod-io/gitpod#3276: a host that says why it refuses, of which users saw a missing scope.
describe('a refusal with a reason', () => {
  const message = (text: string) => ({ message: text });
  const scopes = 'Your credentials lack one or more required privilege scopes.';
  const higher = 'The request requires higher privileges than provided by the access token.';
  const scope = 'Bearer realm="Protected by OAuth 2.0", error="insufficient_scope"';
  const detail = { required: ['account'], granted: ['repository'] };
  it.each<[string, object | string, string, Record<string, string>?]>([
    [
      'blocked_by_policy',
      message(
        'Although you appear to have the correct authorization credentials, the `octo` organization has an IP allow ' +
          'list enabled, and your IP address is not permitted to access this resource.',
      ),
      'has an IP allow list enabled',
    ],
    [
      'blocked_by_policy',
      message(
        "The 'octo' organization forbids access via a fine-grained personal access tokens if the token's lifetime is " +
          "greater than 366 days. Please adjust your token's lifetime.",
      ),
      "the token's lifetime is greater than 366 days",
    ],
    [
      'blocked_by_policy',
      message(
        '`octo` forbids access via a personal access token (classic). Please use a GitHub App, OAuth App, or a ' +
          'personal access token with fine-grained permissions.',
      ),
      'forbids access via a personal access token (classic)',
    ],
    ['blocked_by_policy', message('Sorry. Your account was suspended.'), 'Your account was suspended'],
    ['blocked_by_policy', message('Closed on public holidays'), 'Closed on public holidays'],
    ['sso_required', message('Resource protected by organization SAML enforcement.'), 'SAML enforcement'],
    [
      'sso_required',
      message('no'),
      'no',
      { 'x-github-sso': 'required; url=https://github.com/orgs/octo/sso' },
    ],
    ['insufficient_scope', message('Resource not accessible by personal access token'), 'not accessible'],
    ['insufficient_scope', message('Must have admin rights to Repository.'), 'Must have admin rights'],
    [
      'rate_limited',
      message('You have triggered an abuse detection mechanism.'),
      'abuse detection mechanism',
    ],
    [
      'blocked_by_policy',
      message('403 Forbidden - You must accept the Terms of Service.'),
      'Terms of Service',
    ],
    ['blocked_by_policy', message('403 Forbidden - Your password expired.'), 'Your password expired'],
    ['blocked_by_policy', message('403 Forbidden - Your account has been blocked.'), 'has been blocked'],
    [
      'blocked_by_policy',
      { errors: [message('You must enable two-factor authentication to see this group')] },
      'enable two-factor authentication',
    ],
    ['insufficient_scope', message('403 Forbidden'), '403 Forbidden'],
    ['insufficient_scope', { error: 'insufficient_scope', error_description: higher, scope: 'api' }, higher],
    ['insufficient_scope', message('Closed'), 'Closed', { 'www-authenticate': scope }],
    [
      'insufficient_scope',
      { type: 'error', error: message('App passwords were removed, use an API token.') },
      'App passwords were removed',
    ],
    ['insufficient_scope', { type: 'error', error: { ...message(scopes), detail } }, scopes],
    ['blocked_by_policy', 'Access from this IP address is not allowed', 'this IP address'],
  ])('is %s: %j', (code, body, said, headers = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const head = { status: 403, headers: new Headers(headers) };
    const error = providerErrorFromResponse(head, NOW, { text, token: 'glpat-secret' });
    expect(error).toMatchObject({ code, said: expect.stringContaining(said) });
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
