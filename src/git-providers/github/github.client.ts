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
  /** REST root of a token without host, GraphQL at `/graphql` below it. */
  apiUrl: string;
  timing: RetryTiming;
}

/** `data` of a GraphQL response, and why parts of it are missing. */
export interface GithubResult<Data> {
  data: Data;
  gaps: ProviderErrorCode[];
  /** What GitHub said of them. */
  gapReasons: GapReasons;
}

interface GraphqlResponse {
  data: unknown;
  errors: GithubGraphqlError[];
  headers: Record<string, string | number>;
}

/** What octokit needs for one request of one user: it keeps nothing between requests. */
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

/** Seconds to wait when GitHub says that a limit is reached without saying how long. */
const DEFAULT_WAIT_SECONDS = 60;

/** Requests per hour that GitHub grants an anonymous caller. */
const ANONYMOUS_LIMIT = '60';

/** How many servers are remembered as old, and for how long: they get updated. */
const MAX_OLD_SERVERS = 500;
const OLD_SERVER_TTL_MS = 3_600_000;

/** GitHub over HTTP: addresses, authentication, errors, retries. */
export class GithubClient {
  readonly octokit = createOctokit();
  /** Epoch milliseconds. */
  readonly now: () => number;
  private readonly oldServers: BoundedCache<string, true>;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: GithubClientOptions,
  ) {
    this.now = () => options.timing.now();
    this.oldServers = new BoundedCache(MAX_OLD_SERVERS, { ttl: OLD_SERVER_TTL_MS, perf: { now: this.now } });
  }

  /** Root of the REST API of a server, see {@link githubBaseUrl}. */
  baseUrl(host: string | null): string {
    return githubBaseUrl(host, this.options.apiUrl);
  }

  /** @throws GitProviderError when GitHub sends no data */
  async pullRequests(auth: ProviderAuth, call: ProviderCall): Promise<GithubResult<GithubPullRequests>> {
    return withViewer(await this.query(auth, call, PULL_REQUESTS_DOCUMENT));
  }

  /** @throws GitProviderError when GitHub sends no data */
  async repositoriesAndIssues(
    auth: ProviderAuth,
    call: ProviderCall,
  ): Promise<GithubResult<GithubRepositoriesAndIssues>> {
    return withViewer(await this.query(auth, call, REPOSITORIES_AND_ISSUES_DOCUMENT));
  }

  /**
   * @param ids node ids of pull requests, at most 100
   * @throws GitProviderError when GitHub sends no data
   */
  async mergeability(
    auth: ProviderAuth,
    call: ProviderCall,
    ids: string[],
  ): Promise<GithubResult<GithubMergeability>> {
    return await this.query(auth, call, RECHECK_MERGEABLE_DOCUMENT, { ids });
  }

  /** @throws GitProviderError when GitHub does not say whose token it is */
  async requireViewer(auth: ProviderAuth, call: ProviderCall): Promise<void> {
    withViewer(await this.query(auth, call, VIEWER_DOCUMENT));
  }

  /**
   * The account, over REST.
   *
   * @throws GitProviderError
   */
  async account(auth: ProviderAuth, call: ProviderCall): Promise<GithubAccount> {
    return (await this.read(auth, call, '/user', accountSchema)).data;
  }

  /**
   * A resource or a page of a list, over REST.
   *
   * @param path below the API root, encoded, with its query
   * @param failureOf for what is known to be refused
   * @throws GitProviderError
   */
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

  /** A failed attempt is repeated once where that may help; see `retryOnce` in provider-http. */
  async retryOnce<T>(call: ProviderCall, attempt: () => Promise<T>): Promise<T> {
    return await retryOnce(attempt, call, this.options.timing);
  }

  /** @param failureOf for requests whose refusal means more than that there was no usable response */
  requestOptions(auth: ProviderAuth, call: ProviderCall, failureOf?: FailureOf): GithubRequestOptions {
    return {
      baseUrl: this.baseUrl(auth.host),
      headers: { authorization: `Bearer ${auth.token}` },
      request: { fetch: githubTransport(this.http, call, auth.token, this.now, failureOf) },
    };
  }

  /**
   * A server that does not know a field is asked again without it, and for the next hour only without it.
   *
   * @throws GitProviderError when GitHub sends no data
   */
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
   * GitHub gives up on a query after about ten seconds, with a 502 or an error in the response; half the page often
   * goes through, and is what the second attempt asks for. Where a query needs more than one may, which comes with
   * status 200 and nulls in place of lists, pages are halved until it fits; what is left out at the end is a gap.
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
      // Octokit throws what has both data and errors, together with the request: only the response may go on.
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

/** Lets a response without data pass only if asking again cannot help. */
function withDataOrRejection(response: GraphqlResponse): GraphqlResponse {
  const codes = response.errors.map(mapGraphqlError);
  if (!isObject(response.data) && codes.every((code) => code === 'unavailable')) {
    throw new GitProviderError('unavailable');
  }
  return response;
}

/** Octokit hands on bodies that are no JSON as text, and reads `data` from them as undefined. */
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

const SILENT = { debug: silence, info: silence, warn: silence, error: silence };

/** An octokit that keeps no credentials, sends nothing by itself and writes nothing to the console. */
function createOctokit(): Octokit {
  return new Octokit({ userAgent: 'slipway', log: SILENT, request: { log: SILENT } });
}

function silence(): void {}

/** What a response other than a success means. */
export type FailureOf = (response: Response, bodyText: string) => GitProviderError;

/**
 * The `fetch` that octokit is given for one call: guarded, and within the call's bounds. A response other than a
 * success becomes an error here, before octokit makes one of it that quotes the body.
 *
 * @param now epoch milliseconds
 * @param failureOf for requests whose refusal means more than that there was no usable response
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
      // GitHub in trouble takes good tokens for none (seen by Renovate, `lib/util/http/github.ts`).
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
