import { LRUCache } from 'lru-cache';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { jsonAt, jsonList, jsonText } from '../../common/json-access.js';
import { sendChange } from '../change-requests.js';
import { gitHostBaseUrl } from '../git-host.js';
import {
  GitProviderError,
  type ProviderAuth,
  type ProviderCall,
  type ProviderErrorCode,
} from '../git-provider.js';
import { exchangeJson, type JsonAnswer, type RetryTiming } from '../provider-http.js';
import { gitlabReasons } from './gitlab.mapper.js';
import {
  CURRENT_USER_DOCUMENT,
  DISCUSSION_COUNT_FIELDS,
  SUGGESTED_TASKS_DOCUMENT,
  SUGGESTED_TASKS_FALLBACK_DOCUMENT,
} from './gitlab.schema.js';

interface GitlabClientOptions {
  /** API root of a token without host, `/v4` and `/graphql` below it. */
  apiUrl: string;
  timing: RetryTiming;
}

/** One page of issues. */
export interface GitlabIssuePage {
  issues: unknown[];
  hasMore: boolean;
}

const ISSUES_PATH = '/v4/issues?scope=assigned_to_me&state=opened&order_by=updated_at&sort=desc&per_page=50';

/** Servers remembered as old, and for how long: they get updated, and must not fill the memory. */
const MAX_OLD_SERVERS = 500;
const OLD_SERVER_TTL_MS = 3_600_000;

/** GitLab over HTTP: addresses, authentication, status codes. What the answers say is the mapper's business. */
export class GitlabClient {
  private readonly oldServers: LRUCache<string, true>;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: GitlabClientOptions,
  ) {
    this.oldServers = new LRUCache({
      max: MAX_OLD_SERVERS,
      ttl: OLD_SERVER_TTL_MS,
      perf: { now: () => options.timing.now() },
    });
  }

  /** API root of a server, without a slash at its end. */
  baseUrl(host: string | null): string {
    return host === null ? this.options.apiUrl.replace(/\/+$/, '') : `${gitHostBaseUrl(host)}/api`;
  }

  /**
   * The GraphQL answer with `data` and `errors`. A server that does not know the discussion counters is asked again
   * with the fallback document, and straight away with that one for the next hour.
   *
   * @throws GitProviderError
   */
  async suggestedTasks(auth: ProviderAuth, call: ProviderCall): Promise<unknown> {
    const base = this.baseUrl(auth.host);
    if (!this.oldServers.has(base)) {
      const body = await this.query(auth, call, SUGGESTED_TASKS_DOCUMENT);
      if (!lacksDiscussionCounts(body)) {
        return body;
      }
      this.oldServers.set(base, true);
    }
    return this.query(auth, call, SUGGESTED_TASKS_FALLBACK_DOCUMENT);
  }

  /**
   * Open issues assigned to the user, newest update first, at most 50.
   *
   * @throws GitProviderError
   */
  async assignedIssues(auth: ProviderAuth, call: ProviderCall): Promise<GitlabIssuePage> {
    const { body, headers } = await this.get(auth, call, ISSUES_PATH);
    if (!Array.isArray(body)) {
      throw new GitProviderError('unavailable', { cause: new Error('GET /issues answered no list') });
    }
    return { issues: body, hasMore: (headers.get('x-next-page') ?? '') !== '' };
  }

  /**
   * The GraphQL answer to "who am I".
   *
   * @throws GitProviderError
   */
  async currentUser(auth: ProviderAuth, call: ProviderCall): Promise<unknown> {
    return this.query(auth, call, CURRENT_USER_DOCUMENT);
  }

  /**
   * The account as REST tells it.
   *
   * @throws GitProviderError
   */
  async user(auth: ProviderAuth, call: ProviderCall): Promise<unknown> {
    const { body } = await this.get(auth, call, '/v4/user');
    return body;
  }

  /**
   * Something that may not be there: null for 404.
   *
   * @param path below the API root, encoded, with its query
   * @throws GitProviderError
   */
  async find(auth: ProviderAuth, call: ProviderCall, path: string): Promise<unknown> {
    return (await this.read(auth, call, path)).body;
  }

  /**
   * Sends a change once.
   *
   * @param path below the API root, encoded
   * @throws GitProviderError with a `reason` when GitLab refuses
   */
  async change(auth: ProviderAuth, call: ProviderCall, path: string, body: unknown): Promise<unknown> {
    const url = `${this.baseUrl(auth.host)}${path}`;
    const { token } = auth;
    return await sendChange(
      this.http,
      { url, headers: bearer(auth), body, token, reasons: gitlabReasons },
      call,
      this.options.timing,
    );
  }

  private async query(auth: ProviderAuth, call: ProviderCall, document: string): Promise<unknown> {
    const { body } = await exchangeJson(
      this.http,
      {
        url: `${this.baseUrl(auth.host)}/graphql`,
        headers: bearer(auth),
        body: { query: document },
      },
      call,
      this.options.timing,
    );
    if (body === null) {
      throw noGitlab();
    }
    if (jsonAt(body, 'data') === undefined && jsonAt(body, 'errors') === undefined) {
      throw new GitProviderError('unavailable', { cause: new Error('the answer is no GraphQL') });
    }
    return body;
  }

  private async get(auth: ProviderAuth, call: ProviderCall, path: string): Promise<JsonAnswer> {
    const answer = await this.read(auth, call, path);
    if (answer.body === null) {
      throw noGitlab();
    }
    return answer;
  }

  private async read(auth: ProviderAuth, call: ProviderCall, path: string): Promise<JsonAnswer> {
    return await exchangeJson(
      this.http,
      { url: `${this.baseUrl(auth.host)}${path}`, headers: bearer(auth) },
      call,
      this.options.timing,
    );
  }
}

/** For personal, project and OAuth tokens alike (https://docs.gitlab.com/api/rest/authentication/). */
function bearer(auth: ProviderAuth): Record<string, string> {
  return { authorization: `Bearer ${auth.token}` };
}

/** 404 on an address that every GitLab has. */
function noGitlab(): GitProviderError {
  return new GitProviderError('unsupported', { cause: new Error('the address is not found') });
}

/** GitLab gives most errors no code, so their English text decides; it is not translated by the server. */
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/invalid token|not authenticated/i, 'unauthorized'],
  [/rate limit|too many requests/i, 'rate_limited'],
  [/permission|insufficient[_ ]scope|access denied/i, 'insufficient_scope'],
  [/time(d )?[ -]?out/i, 'timeout'],
  [/complexity|query has depth|doesn't exist on type|doesn't accept argument/i, 'unsupported'],
];

/**
 * Why parts of a GraphQL answer are missing, each reason once, in the order of its `errors`.
 * Classes of errors: https://docs.gitlab.com/api/graphql/#errors
 */
export function mapGraphqlErrors(body: unknown): ProviderErrorCode[] {
  return [...new Set(jsonList(body, 'errors').map(mapGraphqlError))];
}

/** Whether the server refused the document because it is too old for the discussion counters. */
export function lacksDiscussionCounts(body: unknown): boolean {
  return jsonList(body, 'errors').some((error) =>
    DISCUSSION_COUNT_FIELDS.some(
      (field) =>
        jsonText(error, 'message')?.includes(`Field '${field}' doesn't exist on type`) === true ||
        (jsonAt(error, 'extensions', 'code') === 'undefinedField' &&
          jsonAt(error, 'extensions', 'fieldName') === field),
    ),
  );
}

function mapGraphqlError(error: unknown): ProviderErrorCode {
  const message = jsonText(error, 'message') ?? '';
  return MESSAGE_CODES.find(([pattern]) => pattern.test(message))?.[1] ?? 'unavailable';
}
