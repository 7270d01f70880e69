import { GitServerAdapter } from '../change-requests.js';
import {
  GitProviderError,
  type GitCredential,
  type ActorRights,
  type ChangeRequests,
  type HostActor,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type RepositoryActivity,
  type TokenCheck,
  type ApiGuide,
} from '../git-provider.js';
import { combinedError, GapLog, notFound, orFailure, tokenCheck } from '../provider-errors.js';
import { gitHostBaseUrl } from '../public-git-servers.js';
import { oldServers } from '../provider-http.js';
import {
  type BranchQuery,
  type FoundBranch,
  type FoundRepository,
  type Listing,
  pageOf,
  type RepositoryQuery,
} from '../repository-lists.js';
import type { Forks } from '../forks.js';
import { requireRepositoryPath } from '../repository-name.js';
import { GitlabChanges } from './gitlab.changes.js';
import { DEVELOPER, GitlabForks } from './gitlab.forks.js';
import { GitlabClient, gitlabRoot, type GitlabResult } from './gitlab.client.js';
import {
  type GitlabGraphqlWork,
  isUnchecked,
  mapAccount,
  mapGraphqlWork,
  mapIssues,
  projectsQuery,
  toFoundBranch,
  toFoundRepository,
  toApiGuide,
} from './gitlab.mapper.js';
import { accountSchema, listedBranchesSchema, listedProjectsSchema, memberSchema } from './gitlab.schema.js';

/** GitLab.com and self-managed GitLab: one GraphQL request, and one REST request for the issues. */
export class GitlabProvider extends GitServerAdapter {
  readonly kind = 'gitlab';
  private readonly oldServers = oldServers(this.timing);

  serverOf(host: string | null): string {
    return gitlabRoot(host, this.options.apiUrl);
  }

  apiGuide(host: string | null, repository: string, number: number): ApiGuide {
    return toApiGuide(`${this.serverOf(host)}/v4`, repository, number);
  }

  async findWork(call: ProviderCall): Promise<ProviderWork> {
    const client = this.clientFor(call);
    const [graphql, listed] = await Promise.all([
      orFailure(readGraphql(client)),
      orFailure(client.assignedIssues()),
    ]);
    if (graphql instanceof GitProviderError && listed instanceof GitProviderError) {
      throw combinedError([graphql, listed]);
    }
    const { work, gaps } =
      graphql instanceof GitProviderError ? { work: NO_WORK, gaps: new GapLog().with(graphql) } : graphql;
    const isListed = !(listed instanceof GitProviderError);
    if (!isListed) {
      gaps.note(listed);
    }
    return {
      ...work,
      issues: isListed ? mapIssues(listed.data, knownRepositories(work)) : [],
      truncated: work.truncated || (isListed && listed.hasMore),
      gaps: gaps.codes(),
      gapReasons: gaps.reasons(),
    };
  }

  async checkToken(call: ProviderCall): Promise<TokenCheck> {
    return await tokenCheck(this.clientFor(call).currentUser().then(requireUser));
  }

  async getUser(call: ProviderCall): Promise<ProviderUser> {
    const { data } = await this.clientFor(call).require('/v4/user', accountSchema);
    return mapAccount(data);
  }

  async searchRepositories(query: RepositoryQuery, call: ProviderCall): Promise<Listing<FoundRepository>> {
    if (query.installation !== null) {
      throw notFound('installation');
    }
    const path = `/v4/projects?${projectsQuery(query)}`;
    const { data, hasMore } = await this.clientFor(call).page(path, listedProjectsSchema);
    return pageOf(data.map(toFoundRepository), query, hasMore);
  }

  async searchBranches(query: BranchQuery, call: ProviderCall): Promise<Listing<FoundBranch>> {
    const project = encodeURIComponent(requireRepositoryPath(query.repository));
    const search = new URLSearchParams({
      page: String(query.position),
      per_page: String(query.limit),
      ...(query.text !== null && { search: query.text }),
    });
    const path = `/v4/projects/${project}/repository/branches?${search.toString()}`;
    const client = this.clientFor(call);
    const { data, hasMore } = await client.page(path, listedBranchesSchema, notFound('repository'));
    return pageOf(data.map(toFoundBranch), query, hasMore);
  }

  /** GitLab has none: a token is for all projects of its user. */
  listInstallations(): Promise<Listing<string>> {
    return Promise.resolve({ items: [], next: null });
  }

  cloneUrl(host: string | null, repository: string): string {
    const root = host === null ? this.options.cloneUrl : gitHostBaseUrl(host);
    return `${root}/${requireRepositoryPath(repository)}.git`;
  }

  /** `oauth2` is needed for OAuth tokens; personal ones take any user name (https://docs.gitlab.com/api/oauth2/). */
  gitCredential({ token }: ProviderCall): Promise<GitCredential> {
    return Promise.resolve({ username: 'oauth2', password: token });
  }

  async rightsOf({ name }: HostActor, repository: string, call: ProviderCall): Promise<ActorRights> {
    const client = this.clientFor(call);
    const project = encodeURIComponent(requireRepositoryPath(repository));
    const [member, self] = await Promise.all([
      client.find(`/v4/projects/${project}/members/all/${encodeURIComponent(name)}`, memberSchema),
      this.getUser(call),
    ]);
    const isActive = member?.state === 'active' && member.id === name;
    return {
      mayWrite: isActive && (member.access_level ?? 0) >= DEVELOPER,
      isSelf: self.id === name,
    };
  }

  async changeRequests<T>(call: ProviderCall, work: (changes: ChangeRequests) => Promise<T>): Promise<T> {
    return await work(new GitlabChanges(this.clientFor(call), { call, timing: this.timing }));
  }

  async forks<T>(call: ProviderCall, work: (forks: Forks) => Promise<T>): Promise<T> {
    return await work(new GitlabForks(this.clientFor(call), { call, timing: this.timing }));
  }

  private clientFor(call: ProviderCall): GitlabClient {
    const { http, timing } = this;
    return new GitlabClient({ http, timing, call }, this.serverOf(call.host), this.oldServers);
  }
}

interface GraphqlPart {
  work: GitlabGraphqlWork;
  gaps: GapLog;
}

const NO_WORK: GitlabGraphqlWork = {
  changeRequests: [],
  recentRepositories: [],
  probedRepositories: [],
  truncated: false,
};

async function readGraphql(client: GitlabClient): Promise<GraphqlPart> {
  const { data, gaps } = requireUser(await client.work());
  const isIncomplete = data.currentUser.authoredMergeRequests === null || data.recent === null;
  if (isIncomplete && gaps.codes().length === 0) {
    gaps.note(new GitProviderError('unavailable'));
  }
  if (data.currentUser.authoredMergeRequests?.nodes.some(isUnchecked)) {
    await client.haveChecked();
  }
  return { work: mapGraphqlWork(data), gaps };
}

/** GitLab responds with 200 and no user to a token that it does not know. */
function requireUser<Result extends GitlabResult<{ currentUser: { username: string | null } }>>(
  result: Result,
): Result {
  if (result.data.currentUser.username === null) {
    throw result.gaps.failure('unauthorized');
  }
  return result;
}

function knownRepositories(work: GitlabGraphqlWork): Map<string, RepositoryActivity> {
  const seen = [...work.changeRequests.map(({ repository }) => repository), ...work.recentRepositories];
  return new Map(seen.map((repository) => [repository.name, repository]));
}
