import { isJsonObject } from '@slipway/common/json-access.js';
import { retryAfter } from '@slipway/common/http/response-body.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import {
  type GapReasons,
  GitProviderError,
  type ProviderErrorCode,
  type TokenCheck,
} from './git-provider.js';

export interface ProviderResponseHead {
  status: number;
  headers: Headers;
}

/** Statuses whose text is for the user; texts of servers in trouble are for their operator. */
const REFUSALS: readonly number[] = [401, 403, 410, 429];

export interface RefusalBody {
  text: string;
  /** Is removed from what is shown. */
  token: string;
}

/** Used for "too many requests" without a time. */
const DEFAULT_WAIT_SECONDS = 60;

/** Requests of the same user may have ended by then. */
const SHARE_RETRY_SECONDS = 2;

/** Bounds the walk through a chain of causes, which could be circular. */
const MAX_CAUSES = 5;

/**
 * The meaning of a status; null where it depends on the question (1xx to 3xx, 404, other 4xx). `nowMs` is epoch
 * milliseconds. 410 stands for Bitbucket's removed endpoints. A 403 may tell of a limit, as a 429 does
 * (https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api), else see `refusalCode`.
 */
export function providerErrorFromResponse(
  response: ProviderResponseHead,
  nowMs: number,
  { text, token }: RefusalBody,
): GitProviderError | null {
  const { status, headers } = response;
  const said = REFUSALS.includes(status) ? hostReason(text, token) : null;
  switch (status) {
    case 401:
      return new GitProviderError('unauthorized', { said });
    case 403:
      return isRateLimited(headers, text)
        ? rateLimited(headers, nowMs, said)
        : new GitProviderError(isPage(text) ? 'blocked_by_policy' : refusalCode(headers, said), { said });
    case 408:
      return new GitProviderError('timeout');
    case 410:
      return new GitProviderError('unsupported', { said });
    case 429:
      return rateLimited(headers, nowMs, said);
    default:
      return status >= 500
        ? new GitProviderError('unavailable', { retryAfterSeconds: retryAfterSeconds(headers, nowMs) })
        : null;
  }
}

/**
 * The meaning of a failed call; a `GitProviderError` is returned as it is. The chain of causes is searched, and an
 * `UpstreamError` in it replaces its wrapper, which can hold the request with its token.
 */
export function providerErrorFromUpstream(error: unknown): GitProviderError {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && isErrorLike(current); depth += 1) {
    if (current instanceof GitProviderError) {
      return current;
    }
    if (current instanceof UpstreamError) {
      return failureOf(current);
    }
    if (current.name === 'AbortError' || current.name === 'TimeoutError') {
      return new GitProviderError('timeout', { cause: current });
    }
    current = current.cause;
  }
  return new GitProviderError('unavailable', { cause: error });
}

function failureOf(cause: UpstreamError): GitProviderError {
  switch (cause.reason) {
    case 'timeout':
      return new GitProviderError('timeout', { cause });
    case 'share':
      return new GitProviderError('rate_limited', { cause, retryAfterSeconds: SHARE_RETRY_SECONDS });
    default:
      return new GitProviderError('unavailable', { cause, said: cause.advice });
  }
}

/** What was asked for, or why the provider does not give it. @throws what is a defect of ours */
export async function orFailure<T>(asked: Promise<T>): Promise<T | GitProviderError> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof GitProviderError) {
      return error;
    }
    throw error;
  }
}

/** One error for a question of which no part could be read: a rejected token first, else the first reason. */
export function combinedError(reasons: readonly unknown[]): GitProviderError {
  const errors = reasons.map(providerErrorFromUpstream);
  const main = errors.find(({ code }) => code === 'unauthorized') ?? errors[0];
  return new GitProviderError(main?.code ?? 'unavailable', {
    cause: new AggregateError(errors, 'every request failed'),
    retryAfterSeconds: main?.retryAfterSeconds ?? null,
    said: main?.said ?? null,
  });
}

/**
 * Whole seconds until a retry makes sense, null if unknown; past moments give 1. `nowMs` is epoch milliseconds.
 * `Retry-After` wins over `x-ratelimit-reset` (GitHub) and `ratelimit-reset` (GitLab), both
 * epoch seconds (https://docs.gitlab.com/administration/settings/user_and_ip_rate_limits/).
 */
export function retryAfterSeconds(headers: Headers, nowMs: number): number | null {
  const given = retryAfter(headers, nowMs);
  if (given !== null) {
    return given;
  }
  for (const prefix of ['x-ratelimit', 'ratelimit']) {
    const reset = headers.get(`${prefix}-reset`) ?? '';
    if (headers.get(`${prefix}-remaining`) === '0' && /^\d{1,12}$/.test(reset)) {
      return Math.max(1, Math.ceil(Number(reset) + 1 - nowMs / 1000));
    }
  }
  return null;
}

/** The error for something missing, or hidden from this token: providers do not distinguish these. */
export function notFound(what: string): GitProviderError {
  return new GitProviderError('unsupported', {
    reason: `there is no such ${what}, or the token cannot see it`,
  });
}

/** Returns null for "not found", where that is a valid answer. @throws all other errors */
export function nullIfNotFound(error: unknown): null {
  if (isNotFound(error)) {
    return null;
  }
  throw error;
}

/** Whether the failure comes from {@link notFound}. */
export function isNotFound(error: unknown): error is GitProviderError & { reason: string } {
  return error instanceof GitProviderError && error.code === 'unsupported' && error.reason !== null;
}

/** Whether a provider accepts a token, by the answer to one request. Never throws for a failure of the provider. */
export async function tokenCheck(asked: Promise<unknown>): Promise<TokenCheck> {
  try {
    await asked;
    return { status: 'valid' };
  } catch (error) {
    return verdictOf(providerErrorFromUpstream(error));
  }
}

export function verdictOf({ code, said }: GitProviderError): TokenCheck {
  const reason = said === null ? {} : { said };
  return code === 'unauthorized'
    ? { status: 'invalid', ...reason }
    : { status: 'unverified', code, ...reason };
}

/** Also matches texts that say no more than the status. */
const ABOUT_RIGHTS =
  /\b(scopes?|permissions?|privileges?|rights|not accessible|tokens?|authenticat\w*|authori[sz]ed|(no|not have|admin|push|write|read|maintain) access)\b/i;
const SAYS_NOTHING = /^[\s\d:.!-]*((forbidden|access denied|insufficient_scope)[\s\d:;.!-]*)*$/i;
const ABOUT_POLICY =
  /\b(polic(y|ies)|forbids?|allow ?-?lists?|ip address(es)?|enforce[sd]?|terms of|suspended|blocked|lifetimes?|expir\w+|(two|2|multi)[- ]?factor|2fa|mfa)\b/i;

/**
 * Why a host refuses a token that it knows: a missing scope (RFC 6750 section 3.1) or single sign-on by header, else
 * by text. A new scope does not help against a policy on addresses, ages or accounts.
 */
export function refusalCode(headers: Headers, said: string | null): ProviderErrorCode {
  if (/^required/i.test(headers.get('x-github-sso') ?? '') || /\bSAML\b|single sign-on/i.test(said ?? '')) {
    return 'sso_required';
  }
  const isScope = /error="?insufficient_\w*scope/i.test(headers.get('www-authenticate') ?? '');
  if (isScope || said === null || SAYS_NOTHING.test(said)) {
    return 'insufficient_scope';
  }
  return ABOUT_RIGHTS.test(said) && !ABOUT_POLICY.test(said) ? 'insufficient_scope' : 'blocked_by_policy';
}

/** Collects why parts of a result are missing, each reason once, in order of appearance. */
export class GapLog {
  private readonly found = new Set<ProviderErrorCode>();
  private readonly said: GapReasons = {};

  /** Notes why a part is missing. @throws the error itself when it is a defect of ours */
  note(error: unknown): GitProviderError {
    if (!(error instanceof GitProviderError)) {
      throw error;
    }
    this.found.add(error.code);
    if (error.said !== null) {
      this.said[error.code] ??= error.said;
    }
    return error;
  }

  with(failure: GitProviderError): this {
    this.note(failure);
    return this;
  }

  /** Notes what another part of the same result lacks. */
  add(other: GapLog): this {
    for (const code of other.found) {
      this.found.add(code);
    }
    Object.assign(this.said, { ...other.said, ...this.said });
    return this;
  }

  codes(): ProviderErrorCode[] {
    return [...this.found];
  }

  reasons(): GapReasons {
    return { ...this.said };
  }

  /** The first gap as an error, for a result that is of no use without it. */
  failure(otherwise: ProviderErrorCode = 'unavailable'): GitProviderError {
    const [code = otherwise] = this.found;
    return new GitProviderError(code, { said: this.said[code] ?? null });
  }
}

/** Checks the shape: a `DOMException` and errors of another realm are not always `instanceof Error`. */
function isErrorLike(value: unknown): value is { name: unknown; cause?: unknown } {
  return typeof value === 'object' && value !== null && 'name' in value;
}

function isRateLimited(headers: Headers, bodyText: string): boolean {
  return (
    headers.get('x-ratelimit-remaining') === '0' ||
    headers.has('retry-after') ||
    /\brate limit|abuse detection/i.test(bodyText)
  );
}

function rateLimited(headers: Headers, nowMs: number, said: string | null): GitProviderError {
  return new GitProviderError('rate_limited', {
    retryAfterSeconds: retryAfterSeconds(headers, nowMs) ?? DEFAULT_WAIT_SECONDS,
    said,
  });
}

const MAX_REASON_LENGTH = 300;
const MAX_REASONS = 20;
const MAX_REASON_TEXT = 2_000;
const HIDDEN_TOKEN = '***';

/** Error pages of proxies are larger, and do not help. */
const MAX_BODY_LENGTH = 20_000;
/** Members in which APIs and OAuth servers put texts for people. */
const MESSAGE_MEMBERS = ['message', 'error_description', 'error', 'errors', 'detail'];
const MAX_MESSAGE_DEPTH = 3;

/** The texts of an error response as {@link providerReason} shows them. */
function hostReason(bodyText: string, token: string): string | null {
  if (bodyText.length > MAX_BODY_LENGTH) {
    return null;
  }
  const body = parsedOrNull(bodyText);
  const isText = body === null && !/<[a-z!]/i.test(bodyText);
  return providerReason(isText ? [bodyText] : messagesIn(body), token);
}

/** What stands in front of a host answers so; its API does not. */
function isPage(bodyText: string): boolean {
  return /^\s*<(!doctype|html)\b/i.test(bodyText);
}

function messagesIn(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') {
    return [value];
  }
  if (depth > MAX_MESSAGE_DEPTH) {
    return [];
  }
  const parts = Array.isArray(value)
    ? value.slice(0, MAX_REASONS)
    : MESSAGE_MEMBERS.map((member) => (isJsonObject(value) ? value[member] : undefined));
  return parts.flatMap((part) => messagesIn(part, depth + 1));
}

/** One line of at most 300 characters without the token and control characters; null without any text. */
export function providerReason(texts: readonly string[], token: string): string | null {
  const forms = secretFormsOf(token);
  const parts = texts
    .slice(0, MAX_REASONS)
    // Before the text is cut, which could leave a piece of the token.
    .map((text) => forms.reduce((rest, form) => rest.replaceAll(form, HIDDEN_TOKEN), text))
    .map((text) =>
      text
        .slice(0, MAX_REASON_TEXT)
        .replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
        .trim(),
    );
  const masked = [...new Set(parts.filter((part) => part !== ''))].join('; ');
  if (masked === '') {
    return null;
  }
  const characters = Array.from(masked);
  return characters.length <= MAX_REASON_LENGTH
    ? masked
    : `${characters.slice(0, MAX_REASON_LENGTH - 1).join('')}…`;
}

/** Parses JSON; null for the HTML error pages of proxies. */
export function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) {
      return null;
    }
    throw error;
  }
}

/** The token, the secret of `email:secret`, and both as they travel; longest first. */
function secretFormsOf(token: string): string[] {
  const secret = token.slice(token.indexOf(':') + 1);
  return [token, secret]
    .filter((text) => text !== '')
    .flatMap((text) => [text, Buffer.from(text, 'utf8').toString('base64'), encodeURIComponent(text)])
    .toSorted((a, b) => b.length - a.length);
}
