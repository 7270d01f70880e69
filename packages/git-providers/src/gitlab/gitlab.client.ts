import { z } from 'zod';
import type { BoundedCache } from '@slipway/common/bounded-cache.js';
import { GitProviderError, type ProviderErrorCode } from '../git-provider.js';
import { GapLog, providerReason } from '../provider-errors.js';
import { gitHostBaseUrl } from '../public-git-servers.js';
import { addressNotFound, type ListPage, RestClient, type RestContext } from '../rest-client.js';
import { gitlabReasons } from './gitlab.mapper.js';
import {
  CURRENT_USER_DOCUMENT,
  currentUserSchema,
  DISCUSSION_COUNT_FIELDS,
  type GitlabCurrentUser,
  type GitlabGraphqlError,
  type GitlabIssue,
  type GitlabWork,
  graphqlResponseSchema,
  issuesSchema,
  refusalSchema,
  restProjectSchema,
  SUGGESTED_TASKS_DOCUMENT,
  SUGGESTED_TASKS_FALLBACK_DOCUMENT,
  workSchema,
} from './gitlab.schema.js';

export interface GitlabResult<Data> {
  data: Data;
  gaps: GapLog;
}

interface GraphqlResponse {
  data: unknown;
  errors: GitlabGraphqlError[];
}

const ISSUES_PATH = '/v4/issues?scope=assigned_to_me&state=opened&order_by=updated_at&sort=desc&per_page=50';

const MERGE_REQUESTS_PATH =
  '/v4/merge_requests?scope=created_by_me&state=opened&order_by=updated_at&sort=desc&per_page=50&with_merge_status_recheck=true';

/** API root of a server, without a trailing slash; `/v4` and `/graphql` are below it. */
export function gitlabRoot(host: string | null, apiUrl: string): string {
  return host === null ? apiUrl.replace(/\/+$/, '') : `${gitHostBaseUrl(host)}/api`;
}

/** GitLab over HTTP: documents, lists and errors. */
export class GitlabClient extends RestClient {
  /** Works for personal, project and OAuth tokens (https://docs.gitlab.com/api/rest/authentication/). */
  protected readonly headers = { authorization: `Bearer ${this.context.call.token}` };

  constructor(
    context: RestContext,
    readonly root: string,
    private readonly oldServers: BoundedCache<string, true>,
  ) {
    super(context);
  }

  /** All but issues. @throws GitProviderError */
  async work(): Promise<GitlabResult<GitlabWork>> {
    return await this.ask(SUGGESTED_TASKS_DOCUMENT, SUGGESTED_TASKS_FALLBACK_DOCUMENT, workSchema);
  }

  /** A server without discussion counters gets the fallback for an hour. @throws GitProviderError */
  async ask<Data>(
    document: string,
    fallback: string,
    schema: z.ZodType<Data>,
    variables?: Record<string, unknown>,
  ): Promise<GitlabResult<Data>> {
    if (!this.oldServers.has(this.root)) {
      const response = await this.query(document, variables);
      if (!lacksDiscussionCounts(response.errors)) {
        return this.resultOf(response, schema);
      }
      this.oldServers.set(this.root, true);
    }
    return this.resultOf(await this.query(fallback, variables), schema);
  }

  /** Open issues assigned to the user, newest update first, at most 50. @throws GitProviderError */
  async assignedIssues(): Promise<ListPage<GitlabIssue[]>> {
    return await this.page(ISSUES_PATH, issuesSchema);
  }

  /**
   * Asks for merge requests over REST, which has GitLab look for their conflicts. It answers before it has; a later
   * question tells them (https://docs.gitlab.com/api/merge_requests/#list-merge-requests). They stay unknown if it fails.
   */
  async haveChecked(path = MERGE_REQUESTS_PATH): Promise<void> {
    try {
      await this.find(path, z.unknown());
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
    }
  }

  /** The user behind the token. @throws GitProviderError */
  async currentUser(): Promise<GitlabResult<GitlabCurrentUser>> {
    return this.resultOf(await this.query(CURRENT_USER_DOCUMENT), currentUserSchema);
  }

  /** A page of a list. @throws GitProviderError, `absent` for 404 */
  async page<T>(path: string, schema: z.ZodType<T>, absent?: GitProviderError): Promise<ListPage<T>> {
    const { data, headers } = await this.require(path, schema, absent);
    return { data, hasMore: (headers.get('x-next-page') ?? '') !== '' };
  }

  /** As the others do; of a project that was moved, GitLab refuses changes by its old path, which it does for nothing else. */
  override async change(path: string, body: unknown): Promise<unknown> {
    try {
      return await super.change(path, body);
    } catch (error) {
      const [, project = '', resource = ''] = /^(\/v4\/projects\/[^/]+)(.*)$/.exec(path) ?? [];
      const moved = isMoved(error) ? await this.find(project, restProjectSchema) : null;
      if (moved === null) {
        throw error;
      }
      return await super.change(`/v4/projects/${moved.id}${resource}`, body);
    }
  }

  protected reasonsOf(refusal: unknown): string[] {
    return gitlabReasons(refusalSchema.parse(refusal));
  }

  private async query(document: string, variables?: Record<string, unknown>): Promise<GraphqlResponse> {
    const { body } = await this.exchange(`${this.root}/graphql`, { query: document, variables });
    if (body === null) {
      throw addressNotFound();
    }
    const { data, errors } = graphqlResponseSchema.parse(body);
    if (data === undefined && errors === null) {
      throw new GitProviderError('unavailable', { cause: new Error('the response is no GraphQL') });
    }
    return { data, errors: errors ?? [] };
  }

  private resultOf<Data>({ data, errors }: GraphqlResponse, schema: z.ZodType<Data>): GitlabResult<Data> {
    return { data: schema.parse(data), gaps: mapGraphqlErrors(errors, this.context.call.token) };
  }
}

/** See https://github.com/VirtusLab/git-machete/issues/1212. */
function isMoved(error: unknown): boolean {
  return error instanceof GitProviderError && /\bmoved projects\b/.test(error.reason ?? '');
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

function mapGraphqlError({ message }: GitlabGraphqlError): ProviderErrorCode {
  return MESSAGE_CODES.find(([pattern]) => pattern.test(message ?? ''))?.[1] ?? 'unavailable';
}
