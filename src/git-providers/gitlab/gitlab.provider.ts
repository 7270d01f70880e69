import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { openOrFind } from '../change-requests.js';
import {
  GitProviderError,
  GitProvider,
  type GitCredential,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderAuth,
  type ProviderCall,
  type GapReasons,
  type ProviderErrorCode,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
  type ApiGuide,
} from '../git-provider.js';
import { combinedError, GapLog, notFound, providerErrorFromUpstream, verdictOf } from '../provider-errors.js';
import { gitHostBaseUrl, type RetryTiming, SYSTEM_RETRY_TIMING } from '../provider-http.js';
import {
  type BranchQuery,
  type FoundBranch,
  type FoundRepository,
  type Listing,
  pageOf,
  type RepositoryQuery,
} from '../repository-lists.js';
import { requireRepositoryPath } from '../repository-name.js';
import { GitlabChanges } from './gitlab.changes.js';
import { GitlabClient, type GitlabIssuePage } from './gitlab.client.js';
import {
  type GitlabGraphqlWork,
  mapAccount,
  mapGraphqlWork,
  mapIssues,
  projectsQuery,
  toFoundBranch,
  toFoundRepository,
  toApiGuide,
} from './gitlab.mapper.js';
import { listedBranchesSchema, listedProjectsSchema } from './gitlab.schema.js';

export interface GitlabProviderOptions {
  /** API root of a token without host, such as `https://gitlab.com/api`. */
  apiUrl: string;
  cloneUrl: string;
  timing?: RetryTiming;
}

type GraphqlHalf = GitlabGraphqlWork & { gaps: ProviderErrorCode[]; gapReasons: GapReasons };

/** GitLab.com and self-managed GitLab: one GraphQL request, and one REST request for the issues. */
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

  serverOf(host: string | null): string {
    return this.client.baseUrl(host);
  }

  apiGuide(host: string | null, repository: string, number: number): ApiGuide {
    return toApiGuide(`${this.client.baseUrl(host)}/v4`, repository, number);
  }

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

  async checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck> {
    try {
      const { data, gaps, gapReasons } = await this.client.currentUser(auth, call);
      return data.currentUser.username === null ? verdictOf(noUser(gaps, gapReasons)) : { status: 'valid' };
    } catch (error) {
      return verdictOf(providerErrorFromUpstream(error));
    }
  }

  async getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser> {
    return mapAccount(await this.client.account(auth, call));
  }

  async searchRepositories(
    auth: ProviderAuth,
    query: RepositoryQuery,
    call: ProviderCall,
  ): Promise<Listing<FoundRepository>> {
    if (query.installation !== null) {
      throw notFound('installation');
    }
    const path = `/v4/projects?${projectsQuery(query)}`;
    const page = await this.client.page(auth, call, path, listedProjectsSchema);
    if (page === null) {
      throw new GitProviderError('unsupported', { cause: new Error('the address is not found') });
    }
    return pageOf(page.data.map(toFoundRepository), query, page.hasMore);
  }

  async searchBranches(
    auth: ProviderAuth,
    query: BranchQuery,
    call: ProviderCall,
  ): Promise<Listing<FoundBranch>> {
    const project = encodeURIComponent(requireRepositoryPath(query.repository));
    const search = new URLSearchParams({
      page: String(query.position),
      per_page: String(query.limit),
      ...(query.text !== null && { search: query.text }),
    });
    const path = `/v4/projects/${project}/repository/branches?${search.toString()}`;
    const page = await this.client.page(auth, call, path, listedBranchesSchema);
    if (page === null) {
      throw notFound('repository');
    }
    return pageOf(page.data.map(toFoundBranch), query, page.hasMore);
  }

  /** GitLab has none: a token is for all projects of its user. */
  listInstallations(): Promise<Listing<string>> {
    return Promise.resolve({ items: [], next: null });
  }

  async openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest> {
    return await openOrFind(new GitlabChanges(this.client, auth, call, request.repository), request);
  }

  cloneUrl(host: string | null, repository: string): string {
    const root = host === null ? this.options.cloneUrl : gitHostBaseUrl(host);
    return `${root}/${requireRepositoryPath(repository)}.git`;
  }

  /** `oauth2` is needed for OAuth tokens; personal ones take any user name (https://docs.gitlab.com/api/oauth2/). */
  gitCredential({ token }: ProviderAuth): Promise<GitCredential> {
    return Promise.resolve({ username: 'oauth2', password: token });
  }

  private async readGraphql(auth: ProviderAuth, call: ProviderCall): Promise<GraphqlHalf> {
    const { data, gaps, gapReasons } = await this.client.work(auth, call);
    if (data.currentUser.username === null) {
      throw noUser(gaps, gapReasons);
    }
    const isIncomplete = data.currentUser.authoredMergeRequests === null || data.recent === null;
    return {
      ...mapGraphqlWork(data),
      gaps: isIncomplete && gaps.length === 0 ? ['unavailable'] : gaps,
      gapReasons,
    };
  }
}

type Half<T> = { value: T; gap: null } | { value: null; gap: GitProviderError };

function settled<T>(result: PromiseSettledResult<T>): Half<T> {
  return result.status === 'fulfilled'
    ? { value: result.value, gap: null }
    : { value: null, gap: providerErrorFromUpstream(result.reason) };
}

function combine(graphql: Half<GraphqlHalf>, issues: Half<GitlabIssuePage>): ProviderWork {
  const {
    gaps: graphqlGaps,
    gapReasons,
    ...work
  } = graphql.value ?? {
    changeRequests: [],
    recentRepositories: [],
    probedRepositories: [],
    truncated: false,
    gaps: [],
    gapReasons: {},
  };
  const known = new Map(
    [...work.changeRequests.map(({ repository }) => repository), ...work.recentRepositories].map(
      (repository) => [repository.name, repository],
    ),
  );
  const log = new GapLog();
  for (const { gap } of [graphql, issues]) {
    if (gap !== null) {
      log.note(gap);
    }
  }
  return {
    ...work,
    issues: mapIssues(issues.value?.issues ?? [], known),
    truncated: work.truncated || (issues.value?.hasMore ?? false),
    gaps: [...new Set([...graphqlGaps, ...log.codes()])],
    gapReasons: { ...log.reasons(), ...gapReasons },
  };
}

/** GitLab responds with 200 and no user to a token that it does not know. */
function noUser(
  [code = 'unauthorized']: readonly ProviderErrorCode[],
  reasons: GapReasons,
): GitProviderError {
  return new GitProviderError(code, { said: reasons[code] ?? null });
}
