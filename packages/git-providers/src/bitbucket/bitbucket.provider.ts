import type { z } from 'zod';
import { GitServerAdapter } from '../change-requests.js';
import {
  type GitCredential,
  GitProviderError,
  type ProbedRepository,
  type ActorRights,
  type ChangeRequests,
  type HostActor,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
  type TokenCheck,
  type WorkPolicy,
  type ApiGuide,
} from '../git-provider.js';
import { combinedError, GapLog, notFound, orFailure, tokenCheck } from '../provider-errors.js';
import {
  type BranchQuery,
  type FoundBranch,
  type FoundRepository,
  type Listing as Part,
  type ListRange,
  pageOf,
  type RepositoryQuery,
} from '../repository-lists.js';
import type { Forks } from '../forks.js';
import { requireOwnerAndName } from '../repository-name.js';
import { BitbucketChanges } from './bitbucket.changes.js';
import { BitbucketForks } from './bitbucket.forks.js';
import { BitbucketClient, type BitbucketList } from './bitbucket.client.js';
import { BitbucketDetails, type BitbucketIdentity, BitbucketCache } from './bitbucket.details.js';
import {
  bitbucketGitCredential,
  type BitbucketPullRequest,
  type BitbucketRepository,
  branchesQuery,
  toChangeRequests,
  toFoundBranch,
  toProviderUser,
  toPullRequest,
  toRepository,
  toApiGuide,
} from './bitbucket.mapper.js';
import { findRepositories } from './bitbucket.repositories.js';
import {
  accountSchema,
  permissionsSchema,
  slugsSchema,
  branchesSchema,
  pullRequestsSchema,
  repositoriesSchema,
  workspacesSchema,
} from './bitbucket.schema.js';

interface DetailedCall {
  client: BitbucketClient;
  owner: string;
  identity: BitbucketIdentity;
  gaps: GapLog;
  details: BitbucketDetails;
}

interface Listing<T> {
  items: T[];
  hasMore: boolean;
  /** One per workspace that gave nothing. */
  failures: GitProviderError[];
}

const WRITING: readonly (string | null)[] = ['admin', 'write'];
/** Each needs three requests, out of 1,000 an hour. */
const MAX_PULL_REQUESTS = 20;
/** Served for long, as the limit of requests is low; conflicts are computed on request. */
const WORK_POLICY: WorkPolicy = {
  freshMs: 120_000,
  freshWhileComputingMs: 120_000,
  maxChangeRequests: MAX_PULL_REQUESTS,
};
const MAX_RECENT_REPOSITORIES = 100;
const MAX_PROBES = 5;
/** Each needs two requests. */
const MAX_WORKSPACES = 20;
const MAX_WORKSPACE_PAGES = 2;

/**
 * Bitbucket Cloud has neither GraphQL nor a list across workspaces. Three rounds: identity (kept for an hour), lists
 * per workspace, then details and probes. `role=contributor` tells recency and permission in one request. There are
 * no archived repositories, and no issues since 2026-08-20.
 */
export class BitbucketProvider extends GitServerAdapter {
  readonly kind = 'bitbucket';
  private readonly cache = new BitbucketCache(this.timing.now);

  override get workPolicy(): WorkPolicy {
    return WORK_POLICY;
  }

  serverOf(): string {
    return this.options.apiUrl;
  }

  apiGuide(_host: string | null, repository: string, number: number): ApiGuide {
    return toApiGuide(this.options.apiUrl.replace(/\/+$/, ''), repository, number);
  }

  async findWork(call: ProviderCall): Promise<ProviderWork> {
    const { client, owner, identity, gaps, details } = await this.detailsFor(call);
    const pullLists = this.pullRequests(client, identity);
    const repositoryLists = this.repositories(client, identity);
    // Each kind of detail waits for its own lists only.
    const [pulls, repositories, signals, probes] = await Promise.all([
      pullLists,
      repositoryLists,
      pullLists.then(({ items }) => Promise.all(items.map((pull) => details.signalsOf(pull)))),
      repositoryLists.then(({ items }) =>
        Promise.all(probeCandidates(items).map((item) => details.probe(item))),
      ),
    ]);
    this.checkFailures(owner, identity, [...pulls.failures, ...repositories.failures], gaps);
    return {
      changeRequests: toChangeRequests(pulls.items, signals, repositories.items),
      issues: [],
      recentRepositories: repositories.items.map(({ name, activeAt }) => ({ name, activeAt, usable: true })),
      probedRepositories: probes.filter((probe): probe is ProbedRepository => probe !== null),
      truncated: identity.truncated || pulls.hasMore,
      gaps: gaps.codes(),
      gapReasons: gaps.reasons(),
    };
  }

  async checkToken(call: ProviderCall): Promise<TokenCheck> {
    return await tokenCheck(this.getUser(call));
  }

  async getUser(call: ProviderCall): Promise<ProviderUser> {
    const account = await this.clientFor(call).find('/user', accountSchema);
    const user = account && toProviderUser(account);
    if (!user) {
      throw new GitProviderError('unavailable', { cause: new Error('GET /user returned no account') });
    }
    return user;
  }

  async searchRepositories(query: RepositoryQuery, call: ProviderCall): Promise<Part<FoundRepository>> {
    const client = this.clientFor(call);
    const owner = this.cache.ownerOf(this.options.apiUrl, call.token);
    return await findRepositories(client, query, async () => {
      const { workspaces } = this.cache.identities.get(owner) ?? (await this.identify(client, owner));
      return workspaces;
    });
  }

  async searchBranches(query: BranchQuery, call: ProviderCall): Promise<Part<FoundBranch>> {
    const repository = requireOwnerAndName(query.repository).join('/');
    const path = `/repositories/${repository}/refs/branches?${branchesQuery(query, query.text)}`;
    const found = await this.clientFor(call).list(path, branchesSchema, { maxPages: 1 });
    if (found === null) {
      throw notFound('repository');
    }
    return pageOf(found.values.map(toFoundBranch), query, !found.complete);
  }

  async listInstallations(query: ListRange, call: ProviderCall): Promise<Part<string>> {
    const path = `/user/workspaces?pagelen=${query.limit}&page=${query.position}`;
    const found = await this.clientFor(call).list(path, workspacesSchema, { maxPages: 1 });
    const slugs = found?.values.map(({ workspace }) => workspace.slug) ?? [];
    return pageOf(slugs, query, found?.complete === false);
  }

  cloneUrl(_host: string | null, repository: string): string {
    return `${this.options.cloneUrl}/${requireOwnerAndName(repository).join('/')}.git`;
  }

  gitCredential({ token }: ProviderCall): Promise<GitCredential> {
    return Promise.resolve(bitbucketGitCredential(token));
  }

  /** Bitbucket tells other accounts' rights to administrators of the repository only; the rest get 403. */
  async rightsOf({ name }: HostActor, repository: string, call: ProviderCall): Promise<ActorRights> {
    const client = this.clientFor(call);
    const [workspace, slug] = requireOwnerAndName(repository);
    const self = await client.find('/user?fields=uuid', accountSchema);
    const isSelf = self?.uuid === name;
    if (isSelf) {
      const query = `role=contributor&q=${encodeURIComponent(`slug=${JSON.stringify(slug)}`)}`;
      const found = await client.list(`/repositories/${workspace}?${query}`, slugsSchema, { maxPages: 1 });
      return { isSelf, mayWrite: found?.values.some((each) => each.slug === slug.toLowerCase()) ?? false };
    }
    const query = `q=${encodeURIComponent(`user.uuid=${JSON.stringify(name)}`)}`;
    const path = `/workspaces/${workspace}/permissions/repositories/${slug}?${query}`;
    const found = await client.list(path, permissionsSchema, { maxPages: 1 });
    const mayWrite = found?.values.some(
      ({ user, permission }) => user.uuid === name && WRITING.includes(permission),
    );
    return { isSelf, mayWrite: mayWrite ?? false };
  }

  async changeRequests<T>(call: ProviderCall, work: (changes: ChangeRequests) => Promise<T>): Promise<T> {
    return await work(
      new BitbucketChanges(this.clientFor(call), { call, timing: this.timing }, () => this.detailsFor(call)),
    );
  }

  async forks<T>(call: ProviderCall, work: (forks: Forks) => Promise<T>): Promise<T> {
    return await work(new BitbucketForks(this.clientFor(call), { call, timing: this.timing }));
  }

  private async detailsFor(call: ProviderCall): Promise<DetailedCall> {
    const client = this.clientFor(call);
    const { cache } = this;
    const owner = cache.ownerOf(this.options.apiUrl, call.token);
    const identity = cache.identities.get(owner) ?? (await this.identify(client, owner));
    const gaps = new GapLog();
    const details = new BitbucketDetails({ client, cache, owner, userUuid: identity.uuid, gaps });
    return { client, owner, identity, gaps, details };
  }

  private clientFor(call: ProviderCall): BitbucketClient {
    const { http, timing, options } = this;
    return new BitbucketClient({ http, timing, call }, options.apiUrl);
  }

  private async identify(client: BitbucketClient, owner: string): Promise<BitbucketIdentity> {
    const [account, access] = await Promise.all([
      client.find('/user?fields=uuid,account_id,display_name', accountSchema),
      client.list('/user/workspaces?pagelen=100', workspacesSchema, { maxPages: MAX_WORKSPACE_PAGES }),
    ]);
    const uuid = account?.uuid ?? null;
    if (uuid === null || access === null) {
      throw new GitProviderError('unavailable', {
        cause: new Error('the account or its workspaces are missing'),
      });
    }
    const slugs = access.values.map(({ workspace }) => workspace.slug);
    const identity = {
      uuid,
      workspaces: slugs.slice(0, MAX_WORKSPACES),
      truncated: !access.complete || slugs.length > MAX_WORKSPACES,
    };
    this.cache.identities.set(owner, identity);
    return identity;
  }

  private async pullRequests(
    client: BitbucketClient,
    { uuid, workspaces }: BitbucketIdentity,
  ): Promise<Listing<BitbucketPullRequest>> {
    const query = 'state=OPEN&pagelen=50&sort=-updated_on';
    const paths = workspaces.map(
      (slug) => `/workspaces/${encodeURIComponent(slug)}/pullrequests/${encodeURIComponent(uuid)}?${query}`,
    );
    const listing = await listAll(client, paths, pullRequestsSchema, toPullRequest);
    const newest = listing.items.toSorted((a, b) => b.updatedAt - a.updatedAt);
    return {
      ...listing,
      items: newest.slice(0, MAX_PULL_REQUESTS),
      hasMore: listing.hasMore || newest.length > MAX_PULL_REQUESTS,
    };
  }

  private async repositories(
    client: BitbucketClient,
    { workspaces }: BitbucketIdentity,
  ): Promise<Listing<BitbucketRepository>> {
    const query = 'role=contributor&sort=-updated_on&pagelen=30';
    const paths = workspaces.map((slug) => `/repositories/${encodeURIComponent(slug)}?${query}`);
    const listing = await listAll(client, paths, repositoriesSchema, toRepository);
    return {
      ...listing,
      items: listing.items.toSorted((a, b) => b.activeAt - a.activeAt).slice(0, MAX_RECENT_REPOSITORIES),
    };
  }

  /** A workspace that refuses costs its own part only. @throws GitProviderError when no workspace could be read */
  private checkFailures(
    owner: string,
    { workspaces }: BitbucketIdentity,
    failures: readonly GitProviderError[],
    gaps: GapLog,
  ): void {
    if (failures.length === 0) {
      return;
    }
    // The account may have lost or renamed a workspace, or the token its account.
    this.cache.identities.delete(owner);
    if (failures.length === 2 * workspaces.length) {
      throw combinedError(failures);
    }
    for (const failure of failures) {
      gaps.note(failure);
    }
  }
}

async function listAll<Listed, Item>(
  client: BitbucketClient,
  paths: readonly string[],
  elements: z.ZodType<Listed[]>,
  toItem: (listed: Listed) => Item,
): Promise<Listing<Item>> {
  const results = await Promise.all(
    paths.map((path) => orFailure(client.list(path, elements, { maxPages: 1 }))),
  );
  const lists = results.filter(
    (result): result is BitbucketList<Listed> => result !== null && !(result instanceof GitProviderError),
  );
  return {
    items: lists.flatMap(({ values }) => values.map(toItem)),
    hasMore: lists.some(({ complete }) => !complete),
    // A workspace with a 404 is one that the token may not see.
    failures: results
      .map((result) => result ?? new GitProviderError('insufficient_scope'))
      .filter((result) => result instanceof GitProviderError),
  };
}

function probeCandidates(repositories: readonly BitbucketRepository[]): BitbucketRepository[] {
  return repositories.filter(({ fork, empty }) => !fork && !empty).slice(0, MAX_PROBES);
}
