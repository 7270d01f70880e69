import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { jsonAt, jsonText } from '../../common/json-access.js';
import { openOrFind } from '../change-requests.js';
import {
  combinedError,
  providerErrorFromUpstream,
  type RetryTiming,
  SYSTEM_RETRY_TIMING,
} from '../provider-http.js';
import { gitHostBaseUrl } from '../git-host.js';
import {
  GitProviderError,
  GitProvider,
  type GitCredential,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderAuth,
  type ProviderCall,
  type ProviderErrorCode,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
} from '../git-provider.js';
import { requireRepositoryPath } from '../repository-name.js';
import { GitlabClient, type GitlabIssuePage, mapGraphqlErrors } from './gitlab.client.js';
import { type GitlabGraphqlWork, mapGraphqlWork, mapIssues, mapUser } from './gitlab.mapper.js';
import { GitlabChanges } from './gitlab.changes.js';

export interface GitlabProviderOptions {
  /** API root of a token without host, for example `https://gitlab.com/api`. */
  apiUrl: string;
  /** Where git finds the projects of a token without host, `https://gitlab.com`. */
  cloneUrl: string;
  /** Clock, chance and pauses of the one retry; the machine's by default. */
  timing?: RetryTiming;
}

type GraphqlHalf = GitlabGraphqlWork & { gaps: ProviderErrorCode[] };

/** GitLab.com and self-managed GitLab: one GraphQL request for everything but issues, beside it one REST request for these. */
export class GitlabProvider extends GitProvider {
  readonly kind = 'gitlab';
  private readonly client: GitlabClient;

  constructor(
    http: GuardedHttpClient,
    private readonly options: GitlabProviderOptions,
  ) {
    super();
    this.client = new GitlabClient(http, {
      apiUrl: options.apiUrl,
      timing: options.timing ?? SYSTEM_RETRY_TIMING,
    });
  }

  /** @inheritdoc */
  serverOf(host: string | null): string {
    return this.client.baseUrl(host);
  }

  /** @inheritdoc */
  async findWork(auth: ProviderAuth, call: ProviderCall): Promise<ProviderWork> {
    const [graphql, issues] = await Promise.allSettled([
      this.readGraphql(auth, call),
      this.client.assignedIssues(auth, call),
    ]);
    if (graphql.status === 'rejected' && issues.status === 'rejected') {
      throw combinedError([graphql.reason, issues.reason]);
    }
    return combine(settled(graphql), settled(issues));
  }

  /** @inheritdoc */
  async checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck> {
    try {
      const body = await this.client.currentUser(auth, call);
      if (jsonText(body, 'data', 'currentUser', 'username') !== null) {
        return { status: 'valid' };
      }
      const [code = 'unauthorized'] = mapGraphqlErrors(body);
      return verdict(code);
    } catch (error) {
      return verdict(providerErrorFromUpstream(error).code);
    }
  }

  /** @inheritdoc */
  async getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser> {
    const user = mapUser(await this.client.user(auth, call));
    if (!user) {
      throw new GitProviderError('unavailable', { cause: new Error('GET /user answered no account') });
    }
    return user;
  }

  /** @inheritdoc */
  async openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest> {
    return await openOrFind(new GitlabChanges(this.client, auth, call, request.repository), request);
  }

  /** @inheritdoc */
  cloneUrl(host: string | null, repository: string): string {
    const root = host === null ? this.options.cloneUrl : gitHostBaseUrl(host);
    return `${root}/${requireRepositoryPath(repository)}.git`;
  }

  /** `oauth2` is needed for OAuth tokens; personal ones take any user name (https://docs.gitlab.com/api/oauth2/). */
  gitCredential({ token }: ProviderAuth): Promise<GitCredential> {
    return Promise.resolve({ username: 'oauth2', password: token });
  }

  private async readGraphql(auth: ProviderAuth, call: ProviderCall): Promise<GraphqlHalf> {
    const body = await this.client.suggestedTasks(auth, call);
    const gaps = mapGraphqlErrors(body);
    // GitLab answers 200 with no user to whom it does not know.
    if (jsonText(body, 'data', 'currentUser', 'username') === null) {
      throw new GitProviderError(gaps[0] ?? 'unauthorized');
    }
    const isIncomplete =
      jsonAt(body, 'data', 'currentUser', 'authoredMergeRequests') === null ||
      jsonAt(body, 'data', 'recent') === null;
    return {
      ...mapGraphqlWork(jsonAt(body, 'data')),
      gaps: isIncomplete && gaps.length === 0 ? ['unavailable'] : gaps,
    };
  }
}

type Half<T> = { value: T; gap: null } | { value: null; gap: ProviderErrorCode };

function settled<T>(result: PromiseSettledResult<T>): Half<T> {
  return result.status === 'fulfilled'
    ? { value: result.value, gap: null }
    : { value: null, gap: providerErrorFromUpstream(result.reason).code };
}

function combine(graphql: Half<GraphqlHalf>, issues: Half<GitlabIssuePage>): ProviderWork {
  const { gaps: graphqlGaps, ...work } = graphql.value ?? {
    changeRequests: [],
    recentRepositories: [],
    probedRepositories: [],
    truncated: false,
    gaps: [],
  };
  const known = new Map(
    [...work.changeRequests.map(({ repository }) => repository), ...work.recentRepositories].map(
      (repository) => [repository.name, repository],
    ),
  );
  const gaps = [...graphqlGaps, graphql.gap, issues.gap].filter((gap) => gap !== null);
  return {
    ...work,
    issues: mapIssues(issues.value?.issues ?? [], known),
    truncated: work.truncated || (issues.value?.hasMore ?? false),
    gaps: [...new Set(gaps)],
  };
}

function verdict(code: ProviderErrorCode): TokenCheck {
  return code === 'unauthorized' ? { status: 'invalid' } : { status: 'unverified', code };
}
