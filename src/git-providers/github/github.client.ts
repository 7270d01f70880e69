import { Octokit } from '@octokit/rest';
import { LRUCache } from 'lru-cache';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { UpstreamError } from '../../common/http/upstream-error.js';
import { jsonAt, jsonList, jsonText } from '../../common/json-access.js';
import { gitHostBaseUrl } from '../git-host.js';
import {
  GitProviderError,
  type ProviderAuth,
  type ProviderCall,
  type ProviderErrorCode,
} from '../git-provider.js';
import {
  providerErrorFromResponse,
  providerErrorFromUpstream,
  retryAfterSeconds,
  retryOnce,
  type RetryTiming,
  timeLeft,
} from '../provider-http.js';
import {
  type GithubDocument,
  PULL_REQUESTS_DOCUMENT,
  RECHECK_MERGEABLE_DOCUMENT,
  REPOSITORIES_AND_ISSUES_DOCUMENT,
  VIEWER_DOCUMENT,
} from './github.schema.js';

export interface GithubClientOptions {
  /** REST root of a token without host, GraphQL at `/graphql` below it. */
  apiUrl: string;
  timing: RetryTiming;
}

/** `data` of a GraphQL answer, unparsed, and why parts of it are missing. */
export interface GithubAnswer {
  data: unknown;
  gaps: ProviderErrorCode[];
}

interface RawAnswer {
  data: unknown;
  errors: unknown[];
  headers: unknown;
}

/** Seconds to wait when GitHub says that a limit is reached without saying how long. */
const DEFAULT_WAIT_SECONDS = 60;

/** Servers remembered as old, and for how long: they get updated, and must not fill the memory. */
const MAX_OLD_SERVERS = 500;
const OLD_SERVER_TTL_MS = 3_600_000;

/** GitHub over HTTP: addresses, authentication, errors, retries. What the answers say is the mapper's business. */
export class GithubClient {
  private readonly octokit = createOctokit();
  private readonly oldServers: LRUCache<string, true>;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: GithubClientOptions,
  ) {
    this.oldServers = new LRUCache({
      max: MAX_OLD_SERVERS,
      ttl: OLD_SERVER_TTL_MS,
      perf: { now: () => options.timing.now() },
    });
  }

  /** @throws GitProviderError when GitHub gives no data */
  async pullRequests(auth: ProviderAuth, call: ProviderCall): Promise<GithubAnswer> {
    return withViewer(await this.query(auth, call, PULL_REQUESTS_DOCUMENT));
  }

  /** @throws GitProviderError when GitHub gives no data */
  async repositoriesAndIssues(auth: ProviderAuth, call: ProviderCall): Promise<GithubAnswer> {
    return withViewer(await this.query(auth, call, REPOSITORIES_AND_ISSUES_DOCUMENT));
  }

  /**
   * @param ids node ids of pull requests, at most 100
   * @throws GitProviderError when GitHub gives no data
   */
  async mergeability(auth: ProviderAuth, call: ProviderCall, ids: string[]): Promise<GithubAnswer> {
    return await this.query(auth, call, RECHECK_MERGEABLE_DOCUMENT, { ids });
  }

  /** @throws GitProviderError when GitHub gives no data */
  async viewer(auth: ProviderAuth, call: ProviderCall): Promise<GithubAnswer> {
    return withViewer(await this.query(auth, call, VIEWER_DOCUMENT));
  }

  /**
   * The account as REST tells it, unparsed.
   *
   * @throws GitProviderError
   */
  async user(auth: ProviderAuth, call: ProviderCall): Promise<unknown> {
    return await retryOnce(
      async () => {
        const { data }: { data: unknown } = await this.octokit.rest.users.getAuthenticated(
          this.exchange(auth, call),
        );
        return this.checked(auth, data);
      },
      call,
      this.options.timing,
    );
  }

  /** A server that does not know a field is asked again without it, and straight away so for the next hour. */
  private async query(
    auth: ProviderAuth,
    call: ProviderCall,
    document: GithubDocument,
    variables: Record<string, unknown> = {},
  ): Promise<GithubAnswer> {
    const server = githubBaseUrl(auth.host, this.options.apiUrl);
    const send = (text: string): Promise<RawAnswer> =>
      this.sendShrinking(auth, call, text, document.pageSizes, variables);
    if (!this.oldServers.has(server)) {
      const answer = await send(document.text);
      if (document.text === document.fallbackText || !lacksFields(answer.errors)) {
        return this.judge(answer);
      }
      this.oldServers.set(server, true);
    }
    return this.judge(await send(document.fallbackText));
  }

  /**
   * GitHub gives up on a query after about ten seconds, with a 502 or an error in the answer; half the page often
   * goes through, and is what the second attempt asks for.
   */
  private async sendShrinking(
    auth: ProviderAuth,
    call: ProviderCall,
    text: string,
    pageSizes: Readonly<Record<string, number>>,
    variables: Record<string, unknown>,
  ): Promise<RawAnswer> {
    let divisor = 1;
    return await retryOnce(
      async () => {
        try {
          const answer = await this.send(auth, call, text, { ...variables, ...divide(pageSizes, divisor) });
          return this.withDataOrRejection(answer);
        } catch (error) {
          const failure = providerErrorFromUpstream(error);
          // Only what the server itself answered has no cause.
          divisor = failure.code === 'unavailable' && failure.cause === undefined ? 2 : 1;
          throw failure;
        }
      },
      call,
      this.options.timing,
    );
  }

  private async send(
    auth: ProviderAuth,
    call: ProviderCall,
    text: string,
    variables: Record<string, unknown>,
  ): Promise<RawAnswer> {
    try {
      const data: unknown = await this.octokit.graphql(text, { ...variables, ...this.exchange(auth, call) });
      return { data: this.checked(auth, data), errors: [], headers: {} };
    } catch (error) {
      // Octokit throws what has both data and errors, together with the request: only the answer may go on.
      if (jsonAt(error, 'response') === undefined) {
        throw error;
      }
      return {
        data: jsonAt(error, 'response', 'data'),
        errors: jsonList(error, 'response', 'errors'),
        headers: jsonAt(error, 'headers'),
      };
    }
  }

  /** Lets an answer without data pass only if asking again cannot help. */
  private withDataOrRejection(answer: RawAnswer): RawAnswer {
    const codes = answer.errors.map(mapGraphqlError);
    if (!isObject(answer.data) && codes.every((code) => code === 'unavailable')) {
      throw new GitProviderError('unavailable');
    }
    return answer;
  }

  private judge({ data, errors, headers }: RawAnswer): GithubAnswer {
    const gaps = [...new Set(errors.map(mapGraphqlError).filter((code) => code !== null))];
    if (isObject(data)) {
      return { data, gaps };
    }
    const code = gaps[0] ?? 'unavailable';
    throw new GitProviderError(code, {
      retryAfterSeconds: code === 'rate_limited' ? this.waitSeconds(headers) : null,
    });
  }

  private waitSeconds(headers: unknown): number {
    const known = Object.entries(isObject(headers) ? headers : {}).map(([name, value]): [string, string] => [
      name,
      String(value),
    ]);
    return retryAfterSeconds(new Headers(known), this.options.timing.now()) ?? DEFAULT_WAIT_SECONDS;
  }

  /** What octokit needs for one request of one user: it keeps nothing between requests. */
  private exchange(
    auth: ProviderAuth,
    call: ProviderCall,
  ): {
    baseUrl: string;
    headers: { authorization: string };
    request: { fetch: ReturnType<typeof githubTransport> };
  } {
    return {
      baseUrl: githubBaseUrl(auth.host, this.options.apiUrl),
      headers: { authorization: `Bearer ${auth.token}` },
      request: { fetch: githubTransport(this.http, call, this.options.timing.now) },
    };
  }

  /** Octokit hands on bodies that are no JSON as text, and reads `data` from them as undefined. */
  private checked(auth: ProviderAuth, value: unknown): unknown {
    if (!isObject(value)) {
      throw new UpstreamError('malformed', new URL(githubBaseUrl(auth.host, this.options.apiUrl)).origin);
    }
    return value;
  }
}

/** The user is part of every answer, so data without one is no answer of GitHub's. */
function withViewer(answer: GithubAnswer): GithubAnswer {
  if (jsonText(answer.data, 'viewer', 'login') === null) {
    throw new GitProviderError(answer.gaps[0] ?? 'unavailable');
  }
  return answer;
}

function divide(sizes: Readonly<Record<string, number>>, divisor: number): Record<string, number> {
  return Object.fromEntries(
    Object.entries(sizes).map(([name, size]) => [name, Math.max(1, Math.floor(size / divisor))]),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** GitHub Enterprise Cloud with data residency; its API has a name of its own beside the host's. */
const DATA_RESIDENCY_HOST = /^([a-z0-9-]+)\.ghe\.com$/;

/**
 * Root of the REST API, without a slash at its end. GraphQL is at `/graphql` below it, except for Enterprise Server
 * (`…/api/v3` for REST, `…/api/graphql`), whose addresses octokit tells apart by their `/api/v3`.
 *
 * @param host canonical host of a token; null for the default address
 * @param apiUrl the default address
 */
export function githubBaseUrl(host: string | null, apiUrl: string): string {
  if (host === null) {
    return apiUrl.replace(/\/+$/, '');
  }
  const subdomain = DATA_RESIDENCY_HOST.exec(host)?.[1];
  return subdomain === undefined ? `${gitHostBaseUrl(host)}/api/v3` : `https://api.${subdomain}.ghe.com`;
}

/** Types of GraphQL errors; GitHub has been seen to use both names for an exhausted limit. */
const TYPE_CODES: ReadonlyMap<string, ProviderErrorCode> = new Map([
  ['RATE_LIMITED', 'rate_limited'],
  ['RATE_LIMIT', 'rate_limited'],
  ['FORBIDDEN', 'insufficient_scope'],
  ['INSUFFICIENT_SCOPES', 'insufficient_scope'],
]);

/** Errors without a known type; the text is not translated by the server. */
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/rate limit/i, 'rate_limited'],
  [/resource not accessible/i, 'insufficient_scope'],
];

/**
 * What one element of a GraphQL answer's `errors` means; null for NOT_FOUND, which only says that something is
 * gone (https://docs.github.com/en/graphql/guides). A field or argument that the server does not know is
 * `unsupported`; whatever cannot be recognised, "Something went wrong while executing your query" included, is
 * `unavailable`.
 */
export function mapGraphqlError(error: unknown): ProviderErrorCode | null {
  const type = jsonText(error, 'type') ?? '';
  if (jsonAt(error, 'extensions', 'saml_failure') === true) {
    return 'sso_required';
  }
  if (isUnknownToServer(error)) {
    return 'unsupported';
  }
  if (type === 'NOT_FOUND') {
    return null;
  }
  const message = jsonText(error, 'message') ?? '';
  return (
    TYPE_CODES.get(type) ?? MESSAGE_CODES.find(([pattern]) => pattern.test(message))?.[1] ?? 'unavailable'
  );
}

/** Whether the server refused the whole document because it is too old for a field or argument in it. */
export function lacksFields(errors: readonly unknown[]): boolean {
  return errors.some(isUnknownToServer);
}

function isUnknownToServer(error: unknown): boolean {
  const code = jsonText(error, 'extensions', 'code');
  return code === 'undefinedField' || code === 'argumentNotAccepted';
}

const SILENT = { debug: silence, info: silence, warn: silence, error: silence };

/** An octokit that keeps no credentials, speaks to nobody by itself and says nothing on the console. */
export function createOctokit(): Octokit {
  return new Octokit({ userAgent: 'slipway', log: SILENT, request: { log: SILENT } });
}

function silence(): void {}

interface OctokitRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** What an answer that is no success means. */
type FailureOf = (response: Response, bodyText: string) => GitProviderError;

/**
 * The `fetch` that octokit is given for one call: guarded, and within the call's bounds. An answer that is no
 * success becomes an error here, before octokit makes one out of it that quotes the answer.
 *
 * @param now epoch milliseconds
 * @param failureOf for requests whose refusal means more than that there was no usable answer
 */
export function githubTransport(
  http: GuardedHttpClient,
  call: ProviderCall,
  now: () => number,
  failureOf: FailureOf = (response, text) =>
    providerErrorFromResponse(response, now(), text) ??
    new GitProviderError('unsupported', { cause: new Error(`GitHub answered with ${response.status}`) }),
): (url: string, request?: OctokitRequest) => Promise<Response> {
  return async (url, { method, headers, body } = {}) => {
    const timeoutMs = timeLeft(call, now());
    const response = await http.fetch(url, { method, headers, body, signal: call.signal, timeoutMs });
    if (response.ok) {
      return response;
    }
    if (response.status === 403 && /^required/i.test(response.headers.get('x-github-sso') ?? '')) {
      // The organisation wants the token authorised for its single sign-on first.
      throw new GitProviderError('sso_required');
    }
    throw failureOf(response, await response.text());
  };
}
