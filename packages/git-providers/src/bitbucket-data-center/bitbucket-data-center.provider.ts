import type { z } from 'zod';
import { INSTRUCTION_FOLDERS, probedFrom, type ReadFolder } from '../agent-instructions.js';
import { GitServerAdapter } from '../change-requests.js';
import {
  GitProviderError,
  type GitCredential,
  type ProbedRepository,
  type ActorRights,
  type ChangeRequests,
  type HostActor,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type Signal,
  type TokenCheck,
  type WorkPolicy,
  type ApiGuide,
} from '../git-provider.js';
import { combinedError, GapLog, notFound, orFailure, tokenCheck } from '../provider-errors.js';
import { gitHostBaseUrl } from '../public-git-servers.js';
import {
  type BranchQuery,
  type FoundBranch,
  type FoundRepository,
  type Listing,
  type ListRange,
  type RepositoryQuery,
  splitOwner,
} from '../repository-lists.js';
import type { Forks } from '../forks.js';
import { requireOwnerAndName } from '../repository-name.js';
import { BitbucketDataCenterChanges } from './bitbucket-data-center.changes.js';
import { BitbucketDataCenterForks } from './bitbucket-data-center.forks.js';
import { BitbucketDataCenterClient } from './bitbucket-data-center.client.js';
import {
  type DataCenterPullRequest,
  type DataCenterRepository,
  toFailingChecks,
  toFolder,
  toFoundBranch,
  repositoryFilter,
  toFoundRepository,
  toProviderUser,
  toPullRequest,
  toRepository,
  toUserSlug,
  toApiGuide,
} from './bitbucket-data-center.mapper.js';
import {
  accountSchema,
  usersSchema,
  buildStatsSchema,
  folderSchema,
  foundRepositoriesSchema,
  listedBranchesSchema,
  projectKey,
  projectsSchema,
  pullRequestPageSchema,
  repositoryPageSchema,
} from './bitbucket-data-center.schema.js';

const DASHBOARD = '/api/latest/dashboard/pull-requests?role=AUTHOR&state=OPEN&order=NEWEST&limit=50';
const RECENT_REPOSITORIES = '/api/latest/profile/recent/repos?limit=25&permission=REPO_WRITE';
const BUILD_STATS = '/build-status/latest/commits/stats';
const MAX_PROBES = 5;
/** The server does not compute missing conflicts on request, so an early retry would not help. */
const WORK_POLICY: WorkPolicy = { freshMs: 120_000, freshWhileComputingMs: 120_000, maxChangeRequests: 20 };

/**
 * Bitbucket Data Center and Server: pull requests and recent repositories, then builds of all in one request and
 * probes. A server before 5.10 lacks one of the lists, which is a gap `unsupported`. There are no issues.
 */
export class BitbucketDataCenterProvider extends GitServerAdapter {
  readonly kind = 'bitbucket_dc';

  override get workPolicy(): WorkPolicy {
    return WORK_POLICY;
  }

  serverOf(host: string | null): string {
    return host === null ? '' : gitHostBaseUrl(host);
  }

  apiGuide(host: string | null, repository: string, number: number): ApiGuide {
    return toApiGuide(`${this.serverOf(host)}/rest/api/1.0`, repository, number);
  }

  async findWork(call: ProviderCall): Promise<ProviderWork> {
    const client = this.clientFor(call);
    const gaps = new GapLog();
    const dashboard = readList(client, DASHBOARD, pullRequestPageSchema, toPullRequest);
    const recent = readList(client, RECENT_REPOSITORIES, repositoryPageSchema, toRepository);
    const [pulls, repositories, failing, probes] = await Promise.all([
      dashboard,
      recent,
      dashboard.then(({ items }) => this.failingChecks(client, items, gaps)),
      recent.then(({ items }) =>
        Promise.all(probeCandidates(items).map((item) => this.probe(client, item, gaps))),
      ),
    ]);
    const failures = [pulls.failure, repositories.failure].filter((failure) => failure !== null);
    if (failures.length === 2) {
      throw combinedError(failures);
    }
    for (const failure of failures) {
      gaps.note(failure);
    }
    return {
      changeRequests: pulls.items.map(({ commit, ...pull }) => ({ ...pull, failingChecks: failing(commit) })),
      issues: [],
      recentRepositories: repositories.items.map(({ activity }) => activity),
      probedRepositories: probes.filter((probe): probe is ProbedRepository => probe !== null),
      truncated: pulls.hasMore,
      gaps: gaps.codes(),
      gapReasons: gaps.reasons(),
    };
  }

  async checkToken(call: ProviderCall): Promise<TokenCheck> {
    return await tokenCheck(this.gitCredential(call));
  }

  async getUser(call: ProviderCall): Promise<ProviderUser> {
    const client = this.clientFor(call);
    const path = `/api/latest/users/${toUserSlug(await client.userName())}?avatarSize=64`;
    const absent = new GitProviderError('unavailable', { cause: new Error('the user has no account') });
    const { data } = await client.require(path, accountSchema, absent);
    return toProviderUser(data, client.serverUrl);
  }

  async searchRepositories(query: RepositoryQuery, call: ProviderCall): Promise<Listing<FoundRepository>> {
    const { owner, part } = splitOwner(query.text ?? '');
    const project = query.installation ?? owner;
    if (project !== null && !projectKey.safeParse(project).success) {
      throw notFound('project');
    }
    const path =
      project !== null && part === ''
        ? `/api/1.0/projects/${encodeURIComponent(project)}/repos?${range(query)}`
        : `/api/1.0/repos?${range(query, repositoryFilter(project, part))}`;
    const client = this.clientFor(call);
    const { data } = await client.require(path, foundRepositoriesSchema, notFound('project'));
    return listing(data, toFoundRepository);
  }

  async searchBranches(query: BranchQuery, call: ProviderCall): Promise<Listing<FoundBranch>> {
    const [project, slug] = requireOwnerAndName(query.repository);
    const search = {
      orderBy: query.text === null ? 'MODIFICATION' : 'ALPHABETICAL',
      ...(query.text !== null && { filterText: query.text }),
    };
    const repository = `/api/1.0/projects/${encodeURIComponent(project)}/repos/${encodeURIComponent(slug)}`;
    const path = `${repository}/branches?${range(query, search)}`;
    const client = this.clientFor(call);
    const { data } = await client.require(path, listedBranchesSchema, notFound('repository'));
    return listing(data, toFoundBranch);
  }

  async listInstallations(query: ListRange, call: ProviderCall): Promise<Listing<string>> {
    const client = this.clientFor(call);
    const { data } = await client.require(`/api/1.0/projects?${range(query)}`, projectsSchema);
    return listing(data, ({ key }) => key);
  }

  cloneUrl(host: string | null, repository: string): string {
    if (host === null) {
      throw new GitProviderError('unsupported', { reason: 'a Data Center repository needs a host' });
    }
    return `${gitHostBaseUrl(host)}/scm/${requireOwnerAndName(repository).join('/')}.git`;
  }

  /**
   * A token replaces the password of its own user only (Atlassian, "HTTP access tokens"), so the server is asked. Since 10.0
   * it takes no Basic authentication by default (https://github.com/atlassian/data-center-helm-charts/pull/1101). The header is for
   * repositories alone: Git LFS would add it to the one that the server gives it for a file, which is elsewhere, and the
   * server may share its origin.
   */
  async gitCredential(call: ProviderCall): Promise<GitCredential> {
    const username = await this.clientFor(call).userName();
    return { username, password: call.token, bearer: `${this.serverOf(call.host)}/scm` };
  }

  /** The filter finds names that begin with the text, too. */
  async rightsOf({ name }: HostActor, repository: string, call: ProviderCall): Promise<ActorRights> {
    const client = this.clientFor(call);
    const [project, slug] = requireOwnerAndName(repository);
    const query = new URLSearchParams({
      filter: name,
      permission: 'REPO_WRITE',
      'permission.projectKey': project,
      'permission.repositorySlug': slug,
      limit: '100',
    });
    const [found, self] = await Promise.all([
      client.find(`/api/latest/users?${query.toString()}`, usersSchema),
      client.userName(),
    ]);
    const mayWrite = found?.values.some((user) => user.name === name && user.active);
    return { mayWrite: mayWrite ?? false, isSelf: self === name };
  }

  async changeRequests<T>(call: ProviderCall, work: (changes: ChangeRequests) => Promise<T>): Promise<T> {
    return await work(new BitbucketDataCenterChanges(this.clientFor(call), { call, timing: this.timing }));
  }

  async forks<T>(call: ProviderCall, work: (forks: Forks) => Promise<T>): Promise<T> {
    return await work(new BitbucketDataCenterForks(this.clientFor(call), { call, timing: this.timing }));
  }

  private clientFor(call: ProviderCall): BitbucketDataCenterClient {
    return new BitbucketDataCenterClient({ http: this.http, timing: this.timing, call });
  }

  private async failingChecks(
    client: BitbucketDataCenterClient,
    pulls: readonly DataCenterPullRequest[],
    gaps: GapLog,
  ): Promise<(commit: string | null) => Signal> {
    const commits = [...new Set(pulls.map(({ commit }) => commit).filter((commit) => commit !== null))];
    if (commits.length === 0) {
      return () => 'unknown';
    }
    try {
      const stats = await client.ask(BUILD_STATS, commits, buildStatsSchema);
      if (stats === null) {
        throw new GitProviderError('unsupported');
      }
      return (commit) => (commit === null ? 'unknown' : toFailingChecks(stats, commit));
    } catch (error) {
      gaps.note(error);
      return () => 'unknown';
    }
  }

  private async probe(
    client: BitbucketDataCenterClient,
    { activity }: DataCenterRepository,
    gaps: GapLog,
  ): Promise<ProbedRepository | null> {
    const [project, slug] = activity.name.split('/');
    const browse = `/api/latest/projects/${project}/repos/${slug}/browse`;
    const paths = INSTRUCTION_FOLDERS.map((folder) => (folder === '' ? browse : `${browse}/${folder}`));
    const folders = paths.map((path) => readFolder(client, `${path}?limit=500`, gaps));
    return probedFrom(activity, await Promise.all(folders));
  }
}

/** The server counts entries from 0. */
function range({ position, limit }: ListRange, search: Record<string, string> = {}): string {
  const query = new URLSearchParams({ ...search, start: String(position - 1), limit: String(limit) });
  return query.toString();
}

/** Hidden entries leave gaps in a page, so the next one begins where the server says. */
function listing<Listed, Item>(
  page: { values: Listed[]; isLastPage: boolean; nextPageStart: number | null },
  toItem: (listed: Listed) => Item,
): Listing<Item> {
  const { isLastPage, nextPageStart, values } = page;
  return {
    items: values.map(toItem),
    next: isLastPage || nextPageStart === null ? null : nextPageStart + 1,
  };
}

interface Reading<T> {
  items: T[];
  hasMore: boolean;
  failure: GitProviderError | null;
}

interface Page<Listed> {
  values: Listed[];
  isLastPage: boolean | null;
}

async function readList<Listed, Item>(
  client: BitbucketDataCenterClient,
  path: string,
  schema: z.ZodType<Page<Listed>>,
  toItem: (listed: Listed) => Item,
): Promise<Reading<Item>> {
  const page = await orFailure(client.find(path, schema));
  return page === null || page instanceof GitProviderError
    ? { items: [], hasMore: false, failure: page ?? new GitProviderError('unsupported') }
    : { items: page.values.map(toItem), hasMore: page.isLastPage === false, failure: null };
}

async function readFolder(
  client: BitbucketDataCenterClient,
  path: string,
  gaps: GapLog,
): Promise<ReadFolder> {
  try {
    const folder = await client.find(path, folderSchema);
    return folder ? toFolder(folder) : { names: [], complete: true };
  } catch (error) {
    gaps.note(error);
    return null;
  }
}

function probeCandidates(repositories: readonly DataCenterRepository[]): DataCenterRepository[] {
  return repositories.filter(({ activity, fork }) => activity.usable && !fork).slice(0, MAX_PROBES);
}
