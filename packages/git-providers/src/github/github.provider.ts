import { GitServerAdapter } from '../change-requests.js';
import {
  type GitCredential,
  GitProviderError,
  type ActorRights,
  type ChangeRequests,
  type HostActor,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
  type ApiGuide,
} from '../git-provider.js';
import {
  combinedError,
  GapLog,
  isNotFound,
  notFound,
  nullIfNotFound,
  orFailure,
  providerErrorFromUpstream,
  tokenCheck,
} from '../provider-errors.js';
import { gitHostBaseUrl } from '../public-git-servers.js';
import { oldServers } from '../provider-http.js';
import {
  type BranchQuery,
  type FoundBranch,
  type FoundRepository,
  type Listing,
  type ListRange,
  pageOf,
  type RepositoryQuery,
  sliceOf,
  splitOwner,
} from '../repository-lists.js';
import type { Forks } from '../forks.js';
import { requireOwnerAndName } from '../repository-name.js';
import { GithubChanges } from './github.changes.js';
import { GithubForks } from './github.forks.js';
import { githubBaseUrl, GithubClient, type GithubResult } from './github.client.js';
import {
  mapAccount,
  mapMergeability,
  mapPullRequests,
  mapRepositoriesAndIssues,
  repositorySearch,
  toFoundBranch,
  toFoundRepository,
  toListedBranch,
  undeterminedIds,
  toApiGuide,
} from './github.mapper.js';
import {
  accountSchema,
  BRANCHES_DOCUMENT,
  documentOf,
  type GithubDocument,
  type GithubPullRequests,
  installationsSchema,
  installedRepositoriesSchema,
  listedBranchesSchema,
  listedRepositoriesSchema,
  organizationsSchema,
  permissionSchema,
  PULL_REQUESTS_DOCUMENT,
  RECHECK_MERGEABLE_DOCUMENT,
  REPOSITORIES_AND_ISSUES_DOCUMENT,
  searchedRepositoriesSchema,
  VIEWER_DOCUMENT,
} from './github.schema.js';

interface CheckedPullRequests extends GithubResult<GithubPullRequests> {
  rechecked: ReadonlyMap<string, string>;
}

const NO_PULL_REQUESTS = { changeRequests: [], truncated: false };
const NO_REPOSITORIES = { recentRepositories: [], probedRepositories: [], issues: [], truncated: false };

/** The first read makes GitHub compute mergeability, which takes about this long. */
const RECHECK_AFTER_MS = 1_000;
const RECHECK_ROOM_MS = 1_500;

/** `maintain` is shown as `write`, `triage` as `read`. */
const WRITING: readonly (string | null)[] = ['admin', 'write'];

/** GitHub's search returns no more results than this. */
const MAX_SEARCH_RESULTS = 1_000;
const MAX_ORGANIZATIONS = 20;

/** GitHub.com and Enterprise Server: two GraphQL requests side by side, and a third for what was not computed yet. */
export class GithubProvider extends GitServerAdapter {
  readonly kind = 'github';
  private readonly oldServers = oldServers(this.timing);

  serverOf(host: string | null): string {
    // One GitHub per origin: its addresses differ in the path only.
    return new URL(githubBaseUrl(host, this.options.apiUrl)).origin;
  }

  apiGuide(host: string | null, repository: string, number: number): ApiGuide {
    return toApiGuide(githubBaseUrl(host, this.options.apiUrl), repository, number);
  }

  async findWork(call: ProviderCall): Promise<ProviderWork> {
    const client = this.clientFor(call);
    const [pulls, others] = await Promise.all([
      orFailure(this.readPullRequests(client, call)),
      orFailure(client.queryViewer(ofUser(REPOSITORIES_AND_ISSUES_DOCUMENT, call))),
    ]);
    if (pulls instanceof GitProviderError && others instanceof GitProviderError) {
      throw combinedError([pulls, others]);
    }
    const authored =
      pulls instanceof GitProviderError ? NO_PULL_REQUESTS : mapPullRequests(pulls.data, pulls.rechecked);
    const rest =
      others instanceof GitProviderError
        ? NO_REPOSITORIES
        : mapRepositoriesAndIssues(others.data, call.standIn !== undefined);
    const gaps = gapsOf(pulls).add(gapsOf(others));
    return {
      ...authored,
      ...rest,
      truncated: authored.truncated || rest.truncated,
      gaps: gaps.codes(),
      gapReasons: gaps.reasons(),
    };
  }

  async checkToken(call: ProviderCall): Promise<TokenCheck> {
    return await tokenCheck(this.clientFor(call).queryViewer(VIEWER_DOCUMENT));
  }

  async getUser(call: ProviderCall): Promise<ProviderUser> {
    const login = call.standIn?.login ?? null;
    const path = login === null ? '/user' : `/users/${encodeURIComponent(login)}`;
    const { data } = await this.clientFor(call).read(path, accountSchema);
    return mapAccount(data);
  }

  async searchRepositories(query: RepositoryQuery, call: ProviderCall): Promise<Listing<FoundRepository>> {
    const client = this.clientFor(call);
    if (call.standIn !== undefined) {
      const path = `/installation/repositories?${range(query)}`;
      const { data, hasMore } = await client.read(path, installedRepositoriesSchema);
      return pageOf(data.repositories.map(toFoundRepository), query, hasMore);
    }
    if (query.installation !== null) {
      return await installedRepositories(client, query, query.installation);
    }
    if (query.text !== null) {
      return await foundRepositories(client, query, query.text);
    }
    const { data, hasMore } = await client.read(
      `/user/repos?sort=pushed&${range(query)}`,
      listedRepositoriesSchema,
    );
    return pageOf(data.map(toFoundRepository), query, hasMore);
  }

  async searchBranches(query: BranchQuery, call: ProviderCall): Promise<Listing<FoundBranch>> {
    const [owner, name] = requireOwnerAndName(query.repository);
    const client = this.clientFor(call);
    if (query.text === null) {
      const path = `/repos/${owner}/${name}/branches?${range(query)}`;
      const failure = client.absent('repository', 404);
      const { data, hasMore } = await client.read(path, listedBranchesSchema, failure);
      return pageOf(data.map(toListedBranch), query, hasMore);
    }
    const variables = { owner, name, text: query.text };
    const { data, gaps } = await client.query(BRANCHES_DOCUMENT, variables);
    const { nodes } = data.repository.refs;
    if (nodes === null) {
      throw gaps.codes().length === 0 ? notFound('repository') : gaps.failure();
    }
    return sliceOf(nodes.map(toFoundBranch), query);
  }

  /** Only tokens of a GitHub App's users may list installations; other tokens have none. */
  async listInstallations(query: ListRange, call: ProviderCall): Promise<Listing<string>> {
    try {
      const path = `/user/installations?${range(query)}`;
      const { data, hasMore } = await this.clientFor(call).read(path, installationsSchema);
      return pageOf(
        data.installations.map(({ id }) => id),
        query,
        hasMore,
      );
    } catch (error) {
      if (error instanceof GitProviderError && error.code === 'insufficient_scope') {
        return { items: [], next: null };
      }
      throw error;
    }
  }

  cloneUrl(host: string | null, repository: string): string {
    const root = host === null ? this.options.cloneUrl : gitHostBaseUrl(host);
    return `${root}/${requireOwnerAndName(repository).join('/')}.git`;
  }

  /** GitHub accepts any user name; its own documents use this one. */
  gitCredential({ token }: ProviderCall): Promise<GitCredential> {
    return Promise.resolve({ username: 'x-access-token', password: token });
  }

  /** Needs the right to push; where it lacks, GitHub answers 403. Of a public repository everybody has `read`. */
  async rightsOf({ name, id }: HostActor, repository: string, call: ProviderCall): Promise<ActorRights> {
    const client = this.clientFor(call);
    const path = `/repos/${requireOwnerAndName(repository).join('/')}/collaborators/${encodeURIComponent(name)}/permission`;
    const [found, self] = await Promise.all([
      client.read(path, permissionSchema, client.absent('account', 404)).catch(nullIfNotFound),
      // An installation has no account; what it does is never done by a collaborator.
      client.read('/user', accountSchema).catch(nullIfNoUser),
    ]);
    const { permission = null, user = { id: null } } = found?.data ?? {};
    // Another account may have taken the name meanwhile.
    const isSame = user.id !== null && (id === null || String(user.id) === id);
    return {
      mayWrite: isSame && WRITING.includes(permission),
      isSelf: isSame && user.id === self?.data.id,
    };
  }

  async changeRequests<T>(call: ProviderCall, work: (changes: ChangeRequests) => Promise<T>): Promise<T> {
    return await work(new GithubChanges(this.clientFor(call), { call, timing: this.timing }));
  }

  async forks<T>(call: ProviderCall, work: (forks: Forks) => Promise<T>): Promise<T> {
    return await work(new GithubForks(this.clientFor(call), { call, timing: this.timing }));
  }

  private clientFor(call: ProviderCall): GithubClient {
    const { http, timing, options } = this;
    return new GithubClient(
      { http, timing, call },
      githubBaseUrl(call.host, options.apiUrl),
      this.oldServers,
    );
  }

  private async readPullRequests(client: GithubClient, call: ProviderCall): Promise<CheckedPullRequests> {
    const { data, gaps } = await client.queryViewer(ofUser(PULL_REQUESTS_DOCUMENT, call));
    const ids = undeterminedIds(data);
    const { delay, now } = this.timing;
    if (ids.length === 0 || now() + RECHECK_AFTER_MS + RECHECK_ROOM_MS > call.deadlineAt) {
      return { data, gaps, rechecked: new Map() };
    }
    try {
      await delay(RECHECK_AFTER_MS, call.signal);
      const recheck = await client.query(RECHECK_MERGEABLE_DOCUMENT, { ids });
      return { data, gaps: gaps.add(recheck.gaps), rechecked: mapMergeability(recheck.data) };
    } catch (error) {
      gaps.note(providerErrorFromUpstream(error));
      return { data, gaps, rechecked: new Map() };
    }
  }
}

/** The same about the user whom an installation stands in for. */
function ofUser<Data>(document: GithubDocument<Data>, { standIn }: ProviderCall): GithubDocument<Data> {
  return standIn?.login ? documentOf(standIn.login, document) : document;
}

function nullIfNoUser(error: unknown): null {
  if (error instanceof GitProviderError && error.code === 'insufficient_scope') {
    return null;
  }
  throw error;
}

async function installedRepositories(
  client: GithubClient,
  query: RepositoryQuery,
  installation: string,
): Promise<Listing<FoundRepository>> {
  if (!/^\d{1,20}$/.test(installation)) {
    throw notFound('installation');
  }
  const path = `/user/installations/${installation}/repositories?${range(query)}`;
  const failure = client.absent('installation', 403, 404);
  const { data, hasMore } = await client.read(path, installedRepositoriesSchema, failure);
  const { items, next } = pageOf(data.repositories.map(toFoundRepository), query, hasMore);
  const text = query.text?.toLowerCase() ?? '';
  return { items: items.filter(({ name }) => name.toLowerCase().includes(text)), next };
}

async function foundRepositories(
  client: GithubClient,
  query: RepositoryQuery,
  text: string,
): Promise<Listing<FoundRepository>> {
  const { limit, position, sort } = query;
  const wanted = splitOwner(text);
  const search = new URLSearchParams({
    q: repositorySearch(wanted, wanted.owner === null ? await organizations(client) : []),
  });
  const [field, order] = sort?.split('-') ?? [];
  if (field !== undefined && order !== undefined) {
    search.set('sort', field);
    search.set('order', order);
  }
  try {
    const path = `/search/repositories?${search.toString()}&${range(query)}`;
    const { data } = await client.read(path, searchedRepositoriesSchema, client.absent('owner', 422));
    const reachable = Math.min(data.total_count, MAX_SEARCH_RESULTS);
    return pageOf(data.items.map(toFoundRepository), query, position * limit < reachable);
  } catch (error) {
    if (isNotFound(error)) {
      // The name is unknown, or hidden from this token.
      return { items: [], next: null };
    }
    throw error;
  }
}

async function organizations(client: GithubClient): Promise<string[]> {
  try {
    const { data } = await client.read(`/user/orgs?per_page=${MAX_ORGANIZATIONS}`, organizationsSchema);
    return data.map(({ login }) => login);
  } catch (error) {
    if (error instanceof GitProviderError && error.code === 'insufficient_scope') {
      return [];
    }
    throw error;
  }
}

function range({ position, limit }: ListRange): string {
  return `page=${position}&per_page=${limit}`;
}

function gapsOf(part: GithubResult<unknown> | GitProviderError): GapLog {
  return part instanceof GitProviderError ? new GapLog().with(part) : part.gaps;
}
