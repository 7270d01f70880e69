import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { openOrFind } from '../change-requests.js';
import {
  combinedError,
  isNotFound,
  notFound,
  providerErrorFromUpstream,
  verdictOf,
} from '../provider-errors.js';
import { gitHostBaseUrl, type RetryTiming, SYSTEM_RETRY_TIMING } from '../provider-http.js';
import {
  GitProvider,
  type GitCredential,
  GitProviderError,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderAuth,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
  type ApiGuide,
} from '../git-provider.js';
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
import { requireOwnerAndName } from '../repository-name.js';
import { GithubChanges } from './github.changes.js';
import { type FailureOf, GithubClient, githubFailure, type GithubResult } from './github.client.js';
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
  BRANCHES_DOCUMENT,
  type GithubPullRequests,
  installationsSchema,
  installedRepositoriesSchema,
  listedBranchesSchema,
  listedRepositoriesSchema,
  organizationsSchema,
  searchedRepositoriesSchema,
} from './github.schema.js';

export interface GithubProviderOptions {
  /** REST root of a token without host, such as `https://api.github.com`. */
  apiUrl: string;
  cloneUrl: string;
  timing?: RetryTiming;
}

interface CheckedPullRequests extends GithubResult<GithubPullRequests> {
  rechecked: ReadonlyMap<string, string>;
}

/** The first read makes GitHub compute mergeability, which takes about this long. */
const RECHECK_AFTER_MS = 1_000;
const RECHECK_ROOM_MS = 1_500;

/** GitHub's search returns no more results than this. */
const MAX_SEARCH_RESULTS = 1_000;
const MAX_ORGANIZATIONS = 20;

/** GitHub.com and Enterprise Server: two GraphQL requests side by side, and a third for what was not computed yet. */
export class GithubProvider extends GitProvider {
  readonly kind = 'github';
  private readonly client: GithubClient;
  private readonly timing: RetryTiming;

  constructor(
    http: GuardedHttpClient,
    private readonly options: GithubProviderOptions,
  ) {
    super();
    this.timing = options.timing ?? SYSTEM_RETRY_TIMING;
    this.client = new GithubClient(http, { apiUrl: options.apiUrl, timing: this.timing });
  }

  serverOf(host: string | null): string {
    // One GitHub per origin: its addresses differ in the path only.
    return new URL(this.client.baseUrl(host)).origin;
  }

  apiGuide(host: string | null, repository: string, number: number): ApiGuide {
    return toApiGuide(this.client.baseUrl(host), repository, number);
  }

  async findWork(auth: ProviderAuth, call: ProviderCall): Promise<ProviderWork> {
    const [pullRequests, others] = await Promise.allSettled([
      this.readPullRequests(auth, call),
      this.client.repositoriesAndIssues(auth, call),
    ]);
    if (pullRequests.status === 'rejected' && others.status === 'rejected') {
      throw combinedError([pullRequests.reason, others.reason]);
    }
    const authored =
      pullRequests.status === 'fulfilled'
        ? mapPullRequests(pullRequests.value.data, pullRequests.value.rechecked)
        : { changeRequests: [], truncated: false };
    const rest =
      others.status === 'fulfilled'
        ? mapRepositoriesAndIssues(others.value.data)
        : { recentRepositories: [], probedRepositories: [], issues: [], truncated: false };
    return {
      ...authored,
      ...rest,
      truncated: authored.truncated || rest.truncated,
      gaps: [...new Set([...gapsOf(pullRequests).gaps, ...gapsOf(others).gaps])],
      gapReasons: { ...gapsOf(others).gapReasons, ...gapsOf(pullRequests).gapReasons },
    };
  }

  async checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck> {
    try {
      await this.client.requireViewer(auth, call);
      return { status: 'valid' };
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
      return await this.installedRepositories(auth, query, query.installation, call);
    }
    if (query.text !== null) {
      return await this.foundRepositories(auth, query, query.text, call);
    }
    const path = `/user/repos?sort=pushed&${range(query)}`;
    const { data, hasMore } = await this.client.read(auth, call, path, listedRepositoriesSchema);
    return pageOf(data.map(toFoundRepository), query, hasMore);
  }

  async searchBranches(
    auth: ProviderAuth,
    query: BranchQuery,
    call: ProviderCall,
  ): Promise<Listing<FoundBranch>> {
    const [owner, name] = requireOwnerAndName(query.repository);
    if (query.text === null) {
      const path = `/repos/${owner}/${name}/branches?${range(query)}`;
      const failure = this.absent(auth, 'repository', 404);
      const { data, hasMore } = await this.client.read(auth, call, path, listedBranchesSchema, failure);
      return pageOf(data.map(toListedBranch), query, hasMore);
    }
    const variables = { owner, name, text: query.text };
    const { data, gaps, gapReasons } = await this.client.query(auth, call, BRANCHES_DOCUMENT, variables);
    const { nodes } = data.repository.refs;
    if (nodes === null) {
      throw gaps[0] === undefined
        ? notFound('repository')
        : new GitProviderError(gaps[0], { said: gapReasons[gaps[0]] ?? null });
    }
    return sliceOf(nodes.map(toFoundBranch), query);
  }

  /** Only tokens of a GitHub App's users may list installations; other tokens have none. */
  async listInstallations(
    auth: ProviderAuth,
    query: ListRange,
    call: ProviderCall,
  ): Promise<Listing<string>> {
    try {
      const path = `/user/installations?${range(query)}`;
      const { data, hasMore } = await this.client.read(auth, call, path, installationsSchema);
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

  async openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest> {
    return await openOrFind(new GithubChanges(this.client, auth, call, request.repository), request);
  }

  cloneUrl(host: string | null, repository: string): string {
    const root = host === null ? this.options.cloneUrl : gitHostBaseUrl(host);
    return `${root}/${requireOwnerAndName(repository).join('/')}.git`;
  }

  /** GitHub accepts any user name; its own documents use this one. */
  gitCredential({ token }: ProviderAuth): Promise<GitCredential> {
    return Promise.resolve({ username: 'x-access-token', password: token });
  }

  private async installedRepositories(
    auth: ProviderAuth,
    query: RepositoryQuery,
    installation: string,
    call: ProviderCall,
  ): Promise<Listing<FoundRepository>> {
    if (!/^\d{1,20}$/.test(installation)) {
      throw notFound('installation');
    }
    const path = `/user/installations/${installation}/repositories?${range(query)}`;
    const failure = this.absent(auth, 'installation', 403, 404);
    const { data, hasMore } = await this.client.read(auth, call, path, installedRepositoriesSchema, failure);
    const { items, next } = pageOf(data.repositories.map(toFoundRepository), query, hasMore);
    const text = query.text?.toLowerCase() ?? '';
    return { items: items.filter(({ name }) => name.toLowerCase().includes(text)), next };
  }

  private async foundRepositories(
    auth: ProviderAuth,
    query: RepositoryQuery,
    text: string,
    call: ProviderCall,
  ): Promise<Listing<FoundRepository>> {
    const { limit, position, sort } = query;
    const wanted = splitOwner(text);
    const search = new URLSearchParams({
      q: repositorySearch(wanted, wanted.owner === null ? await this.organizations(auth, call) : []),
    });
    const [field, order] = sort?.split('-') ?? [];
    if (field !== undefined && order !== undefined) {
      search.set('sort', field);
      search.set('order', order);
    }
    try {
      const path = `/search/repositories?${search.toString()}&${range(query)}`;
      const failure = this.absent(auth, 'owner', 422);
      const { data } = await this.client.read(auth, call, path, searchedRepositoriesSchema, failure);
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

  private async organizations(auth: ProviderAuth, call: ProviderCall): Promise<string[]> {
    try {
      const path = `/user/orgs?per_page=${MAX_ORGANIZATIONS}`;
      const { data } = await this.client.read(auth, call, path, organizationsSchema);
      return data.map(({ login }) => login);
    } catch (error) {
      if (error instanceof GitProviderError && error.code === 'insufficient_scope') {
        return [];
      }
      throw error;
    }
  }

  private absent({ token }: ProviderAuth, what: string, ...statuses: number[]): FailureOf {
    return (response, text) => {
      const failure = githubFailure(response, { text, token }, this.timing.now());
      return statuses.includes(response.status) && failure.code !== 'rate_limited' ? notFound(what) : failure;
    };
  }

  private async readPullRequests(auth: ProviderAuth, call: ProviderCall): Promise<CheckedPullRequests> {
    const result = await this.client.pullRequests(auth, call);
    const ids = undeterminedIds(result.data);
    const { delay, now } = this.timing;
    if (ids.length === 0 || now() + RECHECK_AFTER_MS + RECHECK_ROOM_MS > call.deadlineAt) {
      return { ...result, rechecked: new Map() };
    }
    try {
      await delay(RECHECK_AFTER_MS, call.signal);
      const { data, gaps } = await this.client.mergeability(auth, call, ids);
      return { ...result, rechecked: mapMergeability(data), gaps: [...result.gaps, ...gaps] };
    } catch (error) {
      const { code } = providerErrorFromUpstream(error);
      return { ...result, rechecked: new Map(), gaps: [...result.gaps, code] };
    }
  }
}

function range({ position, limit }: ListRange): string {
  return `page=${position}&per_page=${limit}`;
}

function gapsOf(
  part: PromiseSettledResult<GithubResult<unknown>>,
): Pick<GithubResult<unknown>, 'gaps' | 'gapReasons'> {
  if (part.status === 'fulfilled') {
    return part.value;
  }
  const { code, said } = providerErrorFromUpstream(part.reason);
  return { gaps: [code], gapReasons: said === null ? {} : { [code]: said } };
}
