import { Octokit } from '@octokit/rest';
import type { z } from 'zod';
import type { BoundedCache } from '@slipway/common/bounded-cache.js';
import type { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import { changeRefusal } from '../change-requests.js';
import { GitProviderError, type CallBounds } from '../git-provider.js';
import {
  type GapLog,
  notFound,
  parsedOrNull,
  providerErrorFromResponse,
  providerErrorFromUpstream,
  providerReason,
  type RefusalBody,
  retryAfterSeconds,
} from '../provider-errors.js';
import { gitHostBaseUrl } from '../public-git-servers.js';
import { pauseBeforeRetry, requestBounds, retryOnce } from '../provider-http.js';
import { requireFitting } from '../response-schema.js';
import { type ListPage, readTail, type RestContext } from '../rest-client.js';
import {
  githubReasons,
  lacksFields,
  mapGraphqlError,
  mapGraphqlErrors,
  missingParts,
} from './github.mapper.js';
import {
  type GithubDocument,
  type GithubGraphqlError,
  graphqlFailureSchema,
  refusalSchema,
} from './github.schema.js';

export interface GithubResult<Data> {
  data: Data;
  gaps: GapLog;
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

/** GitHub over HTTP: authentication, errors, retries. */
export class GithubClient {
  constructor(
    private readonly context: RestContext,
    /** REST root; GraphQL is at `/graphql` below it. */
    readonly root: string,
    private readonly oldServers: BoundedCache<string, true>,
  ) {}

  get origin(): string {
    return new URL(this.root).origin;
  }

  /** Reads over REST; `path` is below the API root, encoded, with its query. @throws GitProviderError */
  async read<T>(path: string, schema: z.ZodType<T>, failureOf?: FailureOf): Promise<ListPage<T>> {
    return await this.retryOnce(async () => {
      const { data, headers }: { data: unknown; headers: { link?: string | undefined } } =
        await octokit.request(`GET ${path}`, this.requestOptions(failureOf));
      const fitting = requireFitting(schema, this.requireJson(data), 'the resource is another one');
      return { data: fitting, hasMore: headers.link?.includes('rel="next"') ?? false };
    });
  }

  /** See {@link readTail}. */
  async tail(path: string): Promise<string | null> {
    return await readTail(this.context, `${this.root}${path}`, {
      authorization: `Bearer ${this.context.call.token}`,
    });
  }

  /** Repeats a failed attempt, see `retryOnce` in provider-http. */
  async retryOnce<T>(attempt: () => Promise<T>): Promise<T> {
    return await retryOnce(attempt, this.context.call, this.context.timing);
  }

  /** Octokit's options for one call; `failureOf` is for requests whose refusal has a special meaning. */
  requestOptions(failureOf?: FailureOf): GithubRequestOptions {
    const { http, call, timing } = this.context;
    return {
      baseUrl: this.root,
      headers: { authorization: `Bearer ${call.token}` },
      request: { fetch: githubTransport(http, call, call.token, timing.now, failureOf) },
    };
  }

  /** The failure for statuses that mean that something is missing, or hidden from this token. */
  absent(what: string, ...statuses: number[]): FailureOf {
    const { call, timing } = this.context;
    return (response, text) => {
      const failure = githubFailure(response, { text, token: call.token }, timing.now());
      return statuses.includes(response.status) && failure.code !== 'rate_limited' ? notFound(what) : failure;
    };
  }

  /** The error for a refused change. */
  refusal(response: Response, text: string): GitProviderError {
    const { call, timing } = this.context;
    const reason = providerReason(githubReasons(refusalSchema.parse(parsedOrNull(text))), call.token);
    return changeRefusal(response, reason, timing.now(), { text, token: call.token });
  }

  /** A document about the user. @throws GitProviderError also for data without one, which does not come from GitHub */
  async queryViewer<Data extends { viewer: { login: string | null } }>(
    document: GithubDocument<Data>,
  ): Promise<GithubResult<Data>> {
    const result = await this.query(document);
    if (result.data.viewer.login === null) {
      throw result.gaps.failure();
    }
    return result;
  }

  /** Sends a document, or for an hour its fallback to an old server. @throws GitProviderError without any data */
  async query<Data>(
    document: GithubDocument<Data>,
    variables: Record<string, unknown> = {},
  ): Promise<GithubResult<Data>> {
    if (!this.oldServers.has(this.root)) {
      const response = await this.sendShrinking(document.text, document.pageSizes, variables);
      if (document.text === document.fallbackText || !lacksFields(response.errors)) {
        return this.resultOf(response, document.schema);
      }
      this.oldServers.set(this.root, true);
    }
    const response = await this.sendShrinking(document.fallbackText, document.pageSizes, variables);
    return this.resultOf(response, document.schema);
  }

  /**
   * GitHub gives up on a query after about ten seconds (502 or an error), so the second attempt asks for half the
   * page. A query over the resource limit (200 with nulls for lists) is halved until it fits; the rest is a gap.
   */
  private async sendShrinking(
    text: string,
    pageSizes: Readonly<Record<string, number>>,
    variables: Record<string, unknown>,
  ): Promise<GraphqlResponse> {
    const largest = Math.max(1, ...Object.values(pageSizes));
    let best = await this.sendHalvingOnce(text, pageSizes, variables);
    for (let divisor = 2; missingParts(best.errors) > 0 && divisor < 2 * largest; divisor *= 2) {
      try {
        const smaller = divide(pageSizes, divisor);
        const response = await this.sendHalvingOnce(text, smaller, variables);
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
    text: string,
    pageSizes: Readonly<Record<string, number>>,
    variables: Record<string, unknown>,
  ): Promise<GraphqlResponse> {
    const { call, timing } = this.context;
    try {
      return withDataOrRejection(await this.send(text, { ...variables, ...pageSizes }));
    } catch (error) {
      const failure = await pauseBeforeRetry(error, call, timing);
      // Only a failure that the server itself reported has no cause.
      const smaller = failure.cause === undefined ? divide(pageSizes, 2) : pageSizes;
      return withDataOrRejection(await this.send(text, { ...variables, ...smaller }));
    }
  }

  private async send(text: string, variables: Record<string, unknown>): Promise<GraphqlResponse> {
    try {
      const data: unknown = await octokit.graphql(text, { ...variables, ...this.requestOptions() });
      return { data: this.requireJson(data), errors: [], headers: {} };
    } catch (error) {
      // Octokit's error holds the request too: only the response may go on.
      const failure = graphqlFailureSchema.safeParse(error);
      if (!failure.success) {
        throw providerErrorFromUpstream(error);
      }
      const { response, headers } = failure.data;
      return { data: response.data, errors: response.errors, headers };
    }
  }

  private resultOf<Data>(response: GraphqlResponse, schema: z.ZodType<Data>): GithubResult<Data> {
    const gaps = mapGraphqlErrors(response.errors, this.context.call.token);
    if (isObject(response.data)) {
      return { data: schema.parse(response.data), gaps };
    }
    const { code, said } = gaps.failure();
    const waitSeconds = code === 'rate_limited' ? this.waitSeconds(response.headers) : null;
    throw new GitProviderError(code, { said, retryAfterSeconds: waitSeconds });
  }

  private waitSeconds(headers: Record<string, string | number>): number {
    const known = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
    return retryAfterSeconds(new Headers(known), this.context.timing.now()) ?? DEFAULT_WAIT_SECONDS;
  }

  /** Octokit returns bodies that are no JSON as text, whose `data` is undefined. */
  private requireJson(value: unknown): unknown {
    if (!isObject(value)) {
      throw new UpstreamError('malformed', this.origin);
    }
    return value;
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

function silence(): void {}

export const SILENT = { debug: silence, info: silence, warn: silence, error: silence };

/** Keeps no credentials, sends nothing by itself and does not log to the console. */
export const octokit = new Octokit({ userAgent: 'slipway', log: SILENT, request: { log: SILENT } });

export type FailureOf = (response: Response, bodyText: string) => GitProviderError;

/**
 * The guarded `fetch` for octokit, within the call's bounds. A failure becomes an error here, before octokit makes
 * one that quotes the body. `now` is epoch milliseconds.
 */
export function githubTransport(
  http: GuardedHttpClient,
  call: CallBounds,
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
