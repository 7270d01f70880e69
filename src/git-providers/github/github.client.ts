import { Octokit } from '@octokit/rest';
import type { z } from 'zod';
import { BoundedCache } from '../../common/bounded-cache.js';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { UpstreamError } from '../../common/http/upstream-error.js';
import {
  type GapReasons,
  GitProviderError,
  type ProviderAuth,
  type ProviderCall,
  type ProviderErrorCode,
} from '../git-provider.js';
import {
  providerErrorFromResponse,
  providerErrorFromUpstream,
  type RefusalBody,
  retryAfterSeconds,
} from '../provider-errors.js';
import { gitHostBaseUrl, requestBounds, retryOnce, type RetryTiming } from '../provider-http.js';
import { requireFitting } from '../response-schema.js';
import { lacksFields, mapGraphqlError, mapGraphqlErrors, missingParts } from './github.mapper.js';
import {
  accountSchema,
  type GithubAccount,
  type GithubDocument,
  type GithubGraphqlError,
  type GithubMergeability,
  type GithubPullRequests,
  type GithubRepositoriesAndIssues,
  graphqlFailureSchema,
  PULL_REQUESTS_DOCUMENT,
  RECHECK_MERGEABLE_DOCUMENT,
  REPOSITORIES_AND_ISSUES_DOCUMENT,
  VIEWER_DOCUMENT,
} from './github.schema.js';

export interface GithubClientOptions {
  /** REST root of a token without host; GraphQL is at `/graphql` below it. */
  apiUrl: string;
  timing: RetryTiming;
}

export interface GithubResult<Data> {
  data: Data;
  gaps: ProviderErrorCode[];
  gapReasons: GapReasons;
}

interface GraphqlResponse {
  data: unknown;
  errors: GithubGraphqlError[];
  headers: Record<string, string | number>;
}

export type GithubRequestOptions = {
  baseUrl: string;
  headers: { authorization: string };
  request: { fetch: (url: string, request?: OctokitRequest) => Promise<Response> };
};

interface OctokitRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Used when GitHub limits requests without giving a time. */
const DEFAULT_WAIT_SECONDS = 60;

/** Requests per hour that GitHub grants an anonymous caller. */
const ANONYMOUS_LIMIT = '60';

/** Old servers are forgotten after a while, since they get updated. */
const MAX_OLD_SERVERS = 500;
const OLD_SERVER_TTL_MS = 3_600_000;

/** GitHub over HTTP: addresses, authentication, errors, retries. */
export class GithubClient {
  readonly octokit = createOctokit();
  readonly now: () => number;
  private readonly oldServers: BoundedCache<string, true>;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: GithubClientOptions,
  ) {
    this.now = () => options.timing.now();
    this.oldServers = new BoundedCache(MAX_OLD_SERVERS, { ttl: OLD_SERVER_TTL_MS, perf: { now: this.now } });
  }

  baseUrl(host: string | null): string {
    return githubBaseUrl(host, this.options.apiUrl);
  }

  /** The user's open pull requests. @throws GitProviderError when GitHub sends no data */
  async pullRequests(auth: ProviderAuth, call: ProviderCall): Promise<GithubResult<GithubPullRequests>> {
    return withViewer(await this.query(auth, call, PULL_REQUESTS_DOCUMENT));
  }

  async repositoriesAndIssues(
    auth: ProviderAuth,
    call: ProviderCall,
  ): Promise<GithubResult<GithubRepositoriesAndIssues>> {
    return withViewer(await this.query(auth, call, REPOSITORIES_AND_ISSUES_DOCUMENT));
  }

  /** Reads `mergeable` of at most 100 node ids. @throws GitProviderError when GitHub sends no data */
  async mergeability(
    auth: ProviderAuth,
    call: ProviderCall,
    ids: string[],
  ): Promise<GithubResult<GithubMergeability>> {
    return await this.query(auth, call, RECHECK_MERGEABLE_DOCUMENT, { ids });
  }

  /** Checks the token. @throws GitProviderError when GitHub does not say whose it is */
  async requireViewer(auth: ProviderAuth, call: ProviderCall): Promise<void> {
    withViewer(await this.query(auth, call, VIEWER_DOCUMENT));
  }

  /** The account, over REST. @throws GitProviderError */
  async account(auth: ProviderAuth, call: ProviderCall): Promise<GithubAccount> {
    return (await this.read(auth, call, '/user', accountSchema)).data;
  }

  /** Reads over REST; `path` is below the API root, encoded, with its query. @throws GitProviderError */
  async read<T>(
    auth: ProviderAuth,
    call: ProviderCall,
    path: string,
    schema: z.ZodType<T>,
    failureOf?: FailureOf,
  ): Promise<{ data: T; hasMore: boolean }> {
    return await this.retryOnce(call, async () => {
      const options = this.requestOptions(auth, call, failureOf);
      const { data, headers }: { data: unknown; headers: { link?: string | undefined } } =
        await this.octokit.request(`GET ${path}`, options);
      const fitting = requireFitting(schema, requireJson(data, options), 'the resource is another one');
      return { data: fitting, hasMore: headers.link?.includes('rel="next"') ?? false };
    });
  }

  /** Repeats a failed attempt, see `retryOnce` in provider-http. */
  async retryOnce<T>(call: ProviderCall, attempt: () => Promise<T>): Promise<T> {
    return await retryOnce(attempt, call, this.options.timing);
  }

  /** Octokit's options for one call; `failureOf` is for requests whose refusal has a special meaning. */
  requestOptions(auth: ProviderAuth, call: ProviderCall, failureOf?: FailureOf): GithubRequestOptions {
    return {
      baseUrl: this.baseUrl(auth.host),
      headers: { authorization: `Bearer ${auth.token}` },
      request: { fetch: githubTransport(this.http, call, auth.token, this.now, failureOf) },
    };
  }

  /** Sends a document, or for an hour its fallback to an old server. @throws GitProviderError without any data */
  async query<Data>(
    auth: ProviderAuth,
    call: ProviderCall,
    document: GithubDocument<Data>,
    variables: Record<string, unknown> = {},
  ): Promise<GithubResult<Data>> {
    const server = this.baseUrl(auth.host);
    const send = (text: string): Promise<GraphqlResponse> =>
      this.sendShrinking(auth, call, text, document.pageSizes, variables);
    if (!this.oldServers.has(server)) {
      const response = await send(document.text);
      if (document.text === document.fallbackText || !lacksFields(response.errors)) {
        return this.resultOf(auth, response, document.schema);
      }
      this.oldServers.set(server, true);
    }
    return this.resultOf(auth, await send(document.fallbackText), document.schema);
  }

  /**
   * GitHub gives up on a query after about ten seconds (502 or an error), so the second attempt asks for half the
   * page. A query over the resource limit (200 with nulls for lists) is halved until it fits; the rest is a gap.
   */
  private async sendShrinking(
    auth: ProviderAuth,
    call: ProviderCall,
    text: string,
    pageSizes: Readonly<Record<string, number>>,
    variables: Record<string, unknown>,
  ): Promise<GraphqlResponse> {
    const largest = Math.max(1, ...Object.values(pageSizes));
    let best = await this.sendHalvingOnce(auth, call, text, pageSizes, variables);
    for (let divisor = 2; missingParts(best.errors) > 0 && divisor < 2 * largest; divisor *= 2) {
      try {
        const smaller = divide(pageSizes, divisor);
        const response = await this.sendHalvingOnce(auth, call, text, smaller, variables);
        const isBetter = missingParts(response.errors) < missingParts(best.errors) || !isObject(best.data);
        best = isBetter ? response : best;
      } catch (error) {
        if (!isObject(best.data)) {
          throw error;
        }
        return best;
      }
    }
    return best;
  }

  private async sendHalvingOnce(
    auth: ProviderAuth,
    call: ProviderCall,
    text: string,
    pageSizes: Readonly<Record<string, number>>,
    variables: Record<string, unknown>,
  ): Promise<GraphqlResponse> {
    let divisor = 1;
    return await this.retryOnce(call, async () => {
      try {
        const response = await this.send(auth, call, text, { ...variables, ...divide(pageSizes, divisor) });
        return withDataOrRejection(response);
      } catch (error) {
        const failure = providerErrorFromUpstream(error);
        // Only a failure that the server itself reported has no cause.
        divisor = failure.code === 'unavailable' && failure.cause === undefined ? 2 : 1;
        throw failure;
      }
    });
  }

  private async send(
    auth: ProviderAuth,
    call: ProviderCall,
    text: string,
    variables: Record<string, unknown>,
  ): Promise<GraphqlResponse> {
    const options = this.requestOptions(auth, call);
    try {
      const data: unknown = await this.octokit.graphql(text, { ...variables, ...options });
      return { data: requireJson(data, options), errors: [], headers: {} };
    } catch (error) {
      // Octokit's error holds the request too: only the response may go on.
      const failure = graphqlFailureSchema.safeParse(error);
      if (!failure.success) {
        throw error;
      }
      const { response, headers } = failure.data;
      return { data: response.data, errors: response.errors, headers };
    }
  }

  private resultOf<Data>(
    auth: ProviderAuth,
    { data, errors, headers }: GraphqlResponse,
    schema: z.ZodType<Data>,
  ): GithubResult<Data> {
    const log = mapGraphqlErrors(errors, auth.token);
    const gaps = log.codes();
    const gapReasons = log.reasons();
    if (isObject(data)) {
      return { data: schema.parse(data), gaps, gapReasons };
    }
    const code = gaps[0] ?? 'unavailable';
    throw new GitProviderError(code, {
      said: gapReasons[code] ?? null,
      retryAfterSeconds: code === 'rate_limited' ? this.waitSeconds(headers) : null,
    });
  }

  private waitSeconds(headers: Record<string, string | number>): number {
    const known = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
    return retryAfterSeconds(new Headers(known), this.now()) ?? DEFAULT_WAIT_SECONDS;
  }
}

/** Lets a response without data pass only if a retry cannot help. */
function withDataOrRejection(response: GraphqlResponse): GraphqlResponse {
  const codes = response.errors.map(mapGraphqlError);
  if (!isObject(response.data) && codes.every((code) => code === 'unavailable')) {
    throw new GitProviderError('unavailable');
  }
  return response;
}

/** Octokit returns bodies that are no JSON as text, whose `data` is undefined. */
function requireJson(value: unknown, { baseUrl }: GithubRequestOptions): unknown {
  if (!isObject(value)) {
    throw new UpstreamError('malformed', new URL(baseUrl).origin);
  }
  return value;
}

/** The user is part of every response, so data without one does not come from GitHub. */
function withViewer<Result extends GithubResult<{ viewer: { login: string | null } }>>(
  result: Result,
): Result {
  if (result.data.viewer.login === null) {
    const code = result.gaps[0] ?? 'unavailable';
    throw new GitProviderError(code, { said: result.gapReasons[code] ?? null });
  }
  return result;
}

function divide(sizes: Readonly<Record<string, number>>, divisor: number): Record<string, number> {
  return Object.fromEntries(
    Object.entries(sizes).map(([name, size]) => [name, Math.max(1, Math.floor(size / divisor))]),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** GitHub Enterprise Cloud with data residency has its API on another host. */
const DATA_RESIDENCY_HOST = /^([a-z0-9-]+)\.ghe\.com$/;

/**
 * Root of the REST API, without a trailing slash. GraphQL is at `/graphql` below it, but for Enterprise Server
 * (`/api/v3`, `/api/graphql`), which octokit recognises by the path.
 */
export function githubBaseUrl(host: string | null, apiUrl: string): string {
  if (host === null) {
    return apiUrl.replace(/\/+$/, '');
  }
  const subdomain = DATA_RESIDENCY_HOST.exec(host)?.[1];
  return subdomain === undefined ? `${gitHostBaseUrl(host)}/api/v3` : `https://api.${subdomain}.ghe.com`;
}

const SILENT = { debug: silence, info: silence, warn: silence, error: silence };

/** Keeps no credentials, sends nothing by itself and does not log to the console. */
function createOctokit(): Octokit {
  return new Octokit({ userAgent: 'slipway', log: SILENT, request: { log: SILENT } });
}

function silence(): void {}

export type FailureOf = (response: Response, bodyText: string) => GitProviderError;

/**
 * The guarded `fetch` for octokit, within the call's bounds. A failure becomes an error here, before octokit makes
 * one that quotes the body. `now` is epoch milliseconds.
 */
export function githubTransport(
  http: GuardedHttpClient,
  call: ProviderCall,
  token: string,
  now: () => number,
  failureOf: FailureOf = (response, text) => githubFailure(response, { text, token }, now()),
): GithubRequestOptions['request']['fetch'] {
  return async (url, { method, headers, body } = {}) => {
    const response = await http.fetch(url, { method, headers, body, ...requestBounds(call, now()) });
    if (response.ok) {
      return response;
    }
    if (response.status === 401 && response.headers.get('x-ratelimit-limit') === ANONYMOUS_LIMIT) {
      // GitHub in trouble rejects good tokens (seen by Renovate, `lib/util/http/github.ts`).
      throw new GitProviderError('unavailable');
    }
    throw failureOf(response, await response.text());
  };
}

/** What a refusal means where nothing more is known of it. */
export function githubFailure(response: Response, body: RefusalBody, now: number): GitProviderError {
  return (
    providerErrorFromResponse(response, now, body) ??
    new GitProviderError('unsupported', { cause: new Error(`GitHub responded with ${response.status}`) })
  );
}
