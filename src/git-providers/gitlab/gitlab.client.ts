import type { z } from 'zod';
import { BoundedCache } from '../../common/bounded-cache.js';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { sendChange } from '../change-requests.js';
import {
  type GapReasons,
  GitProviderError,
  type ProviderAuth,
  type ProviderCall,
  type ProviderErrorCode,
} from '../git-provider.js';
import { GapLog, providerReason } from '../provider-errors.js';
import { exchangeJson, gitHostBaseUrl, type JsonResponse, type RetryTiming } from '../provider-http.js';
import { requireFitting } from '../response-schema.js';
import { gitlabReasons } from './gitlab.mapper.js';
import {
  accountSchema,
  CURRENT_USER_DOCUMENT,
  currentUserSchema,
  DISCUSSION_COUNT_FIELDS,
  type GitlabAccount,
  type GitlabCurrentUser,
  type GitlabGraphqlError,
  type GitlabIssue,
  type GitlabWork,
  graphqlResponseSchema,
  issuesSchema,
  refusalSchema,
  SUGGESTED_TASKS_DOCUMENT,
  SUGGESTED_TASKS_FALLBACK_DOCUMENT,
  workSchema,
} from './gitlab.schema.js';

interface GitlabClientOptions {
  /** API root of a token without host; `/v4` and `/graphql` are below it. */
  apiUrl: string;
  timing: RetryTiming;
}

interface GitlabResult<Data> {
  data: Data;
  gaps: ProviderErrorCode[];
  gapReasons: GapReasons;
}

export interface GitlabIssuePage {
  issues: GitlabIssue[];
  hasMore: boolean;
}

interface GraphqlResponse {
  data: unknown;
  errors: GitlabGraphqlError[];
}

const ISSUES_PATH = '/v4/issues?scope=assigned_to_me&state=opened&order_by=updated_at&sort=desc&per_page=50';

/** Old servers are forgotten after a while, since they get updated. */
const MAX_OLD_SERVERS = 500;
const OLD_SERVER_TTL_MS = 3_600_000;

/** GitLab over HTTP: addresses, authentication, errors. */
export class GitlabClient {
  private readonly oldServers: BoundedCache<string, true>;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: GitlabClientOptions,
  ) {
    this.oldServers = new BoundedCache(MAX_OLD_SERVERS, {
      ttl: OLD_SERVER_TTL_MS,
      perf: { now: () => options.timing.now() },
    });
  }

  /** API root of a server, without a trailing slash. */
  baseUrl(host: string | null): string {
    return host === null ? this.options.apiUrl.replace(/\/+$/, '') : `${gitHostBaseUrl(host)}/api`;
  }

  /** All but issues; a server without discussion counters gets the fallback for an hour. @throws GitProviderError */
  async work(auth: ProviderAuth, call: ProviderCall): Promise<GitlabResult<GitlabWork>> {
    const base = this.baseUrl(auth.host);
    if (!this.oldServers.has(base)) {
      const response = await this.query(auth, call, SUGGESTED_TASKS_DOCUMENT);
      if (!lacksDiscussionCounts(response.errors)) {
        return resultOf(auth, response, workSchema);
      }
      this.oldServers.set(base, true);
    }
    return resultOf(auth, await this.query(auth, call, SUGGESTED_TASKS_FALLBACK_DOCUMENT), workSchema);
  }

  /** Open issues assigned to the user, newest update first, at most 50. @throws GitProviderError */
  async assignedIssues(auth: ProviderAuth, call: ProviderCall): Promise<GitlabIssuePage> {
    const { body, headers } = await this.get(auth, call, ISSUES_PATH);
    if (!Array.isArray(body)) {
      throw new GitProviderError('unavailable', { cause: new Error('GET /issues returned no list') });
    }
    return { issues: issuesSchema.parse(body), hasMore: (headers.get('x-next-page') ?? '') !== '' };
  }

  /** The user behind the token. @throws GitProviderError */
  async currentUser(auth: ProviderAuth, call: ProviderCall): Promise<GitlabResult<GitlabCurrentUser>> {
    return resultOf(auth, await this.query(auth, call, CURRENT_USER_DOCUMENT), currentUserSchema);
  }

  /** The account, over REST. @throws GitProviderError */
  async account(auth: ProviderAuth, call: ProviderCall): Promise<GitlabAccount> {
    const { body } = await this.get(auth, call, '/v4/user');
    return requireFitting(accountSchema, body, 'GET /user returned no account');
  }

  /** One resource; null for 404. `path` is below the API root, encoded, with its query. @throws GitProviderError */
  async find<T>(
    auth: ProviderAuth,
    call: ProviderCall,
    path: string,
    schema: z.ZodType<T>,
  ): Promise<T | null> {
    const { body } = await this.read(auth, call, path);
    return body === null ? null : schema.parse(body);
  }

  /** A page of a list; null for 404. `path` as in `find`. @throws GitProviderError */
  async page<T>(
    auth: ProviderAuth,
    call: ProviderCall,
    path: string,
    schema: z.ZodType<T>,
  ): Promise<{ data: T; hasMore: boolean } | null> {
    const { body, headers } = await this.read(auth, call, path);
    return body === null
      ? null
      : {
          data: requireFitting(schema, body, 'the response is another list'),
          hasMore: (headers.get('x-next-page') ?? '') !== '',
        };
  }

  /** Sends a change once. `path` as in `find`. @throws GitProviderError with a `reason` when GitLab refuses */
  async change(auth: ProviderAuth, call: ProviderCall, path: string, body: unknown): Promise<unknown> {
    const url = `${this.baseUrl(auth.host)}${path}`;
    const { token } = auth;
    return await sendChange(
      this.http,
      {
        url,
        headers: bearer(auth),
        body,
        token,
        reasons: (refusal) => gitlabReasons(refusalSchema.parse(refusal)),
      },
      call,
      this.options.timing,
    );
  }

  private async query(auth: ProviderAuth, call: ProviderCall, document: string): Promise<GraphqlResponse> {
    const { body } = await exchangeJson(
      this.http,
      {
        url: `${this.baseUrl(auth.host)}/graphql`,
        headers: bearer(auth),
        token: auth.token,
        body: { query: document },
      },
      call,
      this.options.timing,
    );
    if (body === null) {
      throw noGitlab();
    }
    const { data, errors } = graphqlResponseSchema.parse(body);
    if (data === undefined && errors === null) {
      throw new GitProviderError('unavailable', { cause: new Error('the response is no GraphQL') });
    }
    return { data, errors: errors ?? [] };
  }

  private async get(auth: ProviderAuth, call: ProviderCall, path: string): Promise<JsonResponse> {
    const response = await this.read(auth, call, path);
    if (response.body === null) {
      throw noGitlab();
    }
    return response;
  }

  private async read(auth: ProviderAuth, call: ProviderCall, path: string): Promise<JsonResponse> {
    return await exchangeJson(
      this.http,
      { url: `${this.baseUrl(auth.host)}${path}`, headers: bearer(auth), token: auth.token },
      call,
      this.options.timing,
    );
  }
}

/** Works for personal, project and OAuth tokens (https://docs.gitlab.com/api/rest/authentication/). */
function bearer(auth: ProviderAuth): Record<string, string> {
  return { authorization: `Bearer ${auth.token}` };
}

/** For a 404 on an address that every GitLab has. */
function noGitlab(): GitProviderError {
  return new GitProviderError('unsupported', { cause: new Error('the address is not found') });
}

/** Most errors have no code; their English text is not translated by the server. */
const MESSAGE_CODES: readonly (readonly [RegExp, ProviderErrorCode])[] = [
  [/invalid token|not authenticated/i, 'unauthorized'],
  [/rate limit|too many requests/i, 'rate_limited'],
  [/permission|insufficient[_ ]scope|access denied/i, 'insufficient_scope'],
  [/time(d )?[ -]?out/i, 'timeout'],
  [/complexity|query has depth|doesn't exist on type|doesn't accept argument/i, 'unsupported'],
];

/** Reasons for missing parts, each once, in order (https://docs.gitlab.com/api/graphql/#errors). */
export function mapGraphqlErrors(errors: readonly GitlabGraphqlError[], token: string): GapLog {
  const log = new GapLog();
  for (const error of errors) {
    const said = providerReason([error.message ?? ''], token);
    log.note(new GitProviderError(mapGraphqlError(error), { said }));
  }
  return log;
}

/** Whether the server is too old for the discussion counters. */
export function lacksDiscussionCounts(errors: readonly GitlabGraphqlError[]): boolean {
  return errors.some(({ message, extensions }) =>
    DISCUSSION_COUNT_FIELDS.some(
      (field) =>
        message?.includes(`Field '${field}' doesn't exist on type`) === true ||
        (extensions.code === 'undefinedField' && extensions.fieldName === field),
    ),
  );
}

function resultOf<Data>(
  { token }: ProviderAuth,
  { data, errors }: GraphqlResponse,
  schema: z.ZodType<Data>,
): GitlabResult<Data> {
  const log = mapGraphqlErrors(errors, token);
  return { data: schema.parse(data), gaps: log.codes(), gapReasons: log.reasons() };
}

function mapGraphqlError({ message }: GitlabGraphqlError): ProviderErrorCode {
  return MESSAGE_CODES.find(([pattern]) => pattern.test(message ?? ''))?.[1] ?? 'unavailable';
}
