import { Injectable } from '@nestjs/common';
import type { AuthUser } from '../auth/auth.decorators.js';
import { isWithin, providerWithin, requireWithin } from '../auth/key-repositories.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError } from '../common/errors/domain-error.js';
import { gitProviderProblem, noGitProvider, noTokenOf } from './git-provider-problem.js';
import {
  GitProviderError,
  type ProviderCall,
  type ProviderType,
} from '@slipway/git-providers/git-provider.js';
import type { GitReader } from './provider-cache.js';
import { type Cached, ProviderCache } from './provider-cache.js';
import { isNotFound } from '@slipway/git-providers/provider-errors.js';
import { ProviderReader } from './provider-reader.js';
import type {
  BranchQuery,
  FoundBranch,
  FoundRepository,
  Listing,
  ListRange,
  RepositoryQuery,
} from '@slipway/git-providers/repository-lists.js';
import type { StoredCredential } from './tokens/provider-token.repository.js';
import { TokenRenewals } from './tokens/token-renewals.js';

export interface ProviderListing<T> {
  provider: ProviderType;
  read: Cached<Listing<T>>;
}

type Reader = Pick<AuthUser, 'id' | 'repositories'>;

/** A new branch is found within a minute, and typing repeats the same question. */
const FRESH_MS = 60_000;
/** About 50 MB together, as names are bounded. */
const MAX_ENTRIES = 5_000;
const MAX_ITEMS = 100_000;

/** Lists repositories, branches and installations of a user's git providers. */
@Injectable()
export class RepositoryListsService {
  private readonly repositories: ProviderCache<Listing<FoundRepository>>;
  private readonly branches: ProviderCache<Listing<FoundBranch>>;
  private readonly installations: ProviderCache<Listing<string>>;

  constructor(
    private readonly tokens: TokenRenewals,
    private readonly providers: ProviderReader,
    clock: Clock,
  ) {
    this.repositories = cacheOf(clock);
    this.branches = cacheOf(clock);
    this.installations = cacheOf(clock);
  }

  /**
   * A null `provider` stands for the first that the user has a token for. Of a part, what is not of the key is left out.
   * @throws DomainError no_git_provider, not_found, or what the provider's failure means
   */
  async findRepositories(
    { id: userId, repositories }: Reader,
    provider: ProviderType | null,
    query: RepositoryQuery,
  ): Promise<ProviderListing<FoundRepository>> {
    const wanted = { ...query, text: query.text === null ? null : withoutAddress(query.text) };
    const { provider: asked, read } = await this.read(
      userId,
      provider,
      this.repositories,
      wanted,
      (adapter, call) => adapter.searchRepositories(wanted, call),
    );
    const items = read.value.items.filter(({ name }) =>
      isWithin(repositories, { gitProvider: asked, selectedRepository: name }),
    );
    return { provider: asked, read: { ...read, value: { ...read.value, items } } };
  }

  /**
   * A null `provider` stands for the first of the user's that has such a repository.
   * @throws DomainError as `findRepositories`, and outside_repositories for one that is not of the key
   */
  async findBranches(
    { id: userId, repositories }: Reader,
    given: ProviderType | null,
    query: BranchQuery,
  ): Promise<ProviderListing<FoundBranch>> {
    const { repository } = query;
    const provider = given ?? (repositories && providerWithin(repositories, repository));
    requireWithin(repositories, { gitProvider: provider, selectedRepository: repository });
    const asked = provider === null ? await this.tokens.current(userId) : [{ provider }];
    const readings = asked.map(({ provider: each }) =>
      this.read(userId, each, this.branches, query, (adapter, call) =>
        adapter.searchBranches(query, call),
      ).catch(domainError),
    );
    // The answer of the first may come before the others fail.
    void Promise.allSettled(readings);
    const failures: DomainError[] = [];
    for (const reading of readings) {
      const found = await reading;
      if (!(found instanceof DomainError)) {
        return found;
      }
      failures.push(found);
    }
    throw failures[0] ?? noGitProvider();
  }

  async findInstallations(
    userId: string,
    provider: ProviderType,
    range: ListRange,
  ): Promise<ProviderListing<string>> {
    return await this.read(userId, provider, this.installations, range, (adapter, call) =>
      adapter.listInstallations(range, call),
    );
  }

  private async read<T>(
    userId: string,
    wanted: ProviderType | null,
    cache: ProviderCache<Listing<T>>,
    query: RepositoryQuery | BranchQuery | ListRange,
    list: (adapter: GitReader, call: ProviderCall) => Promise<Listing<T>>,
  ): Promise<ProviderListing<T>> {
    const credential = await this.credential(userId, wanted);
    const { provider } = credential;
    const subject = JSON.stringify(Object.entries(query).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    try {
      const read = await this.providers.read(
        { userId, credential, subject },
        cache,
        async (adapter, call) => ({
          value: await list(adapter, call),
          freshMs: FRESH_MS,
        }),
      );
      return { provider, read };
    } catch (error) {
      if (isNotFound(error)) {
        throw new DomainError('not_found', `At ${provider}, ${error.reason}.`, { cause: error });
      }
      throw error instanceof GitProviderError ? gitProviderProblem(provider, error) : error;
    }
  }

  private async credential(userId: string, provider: ProviderType | null): Promise<StoredCredential> {
    const credentials = await this.tokens.current(userId);
    const found = provider === null ? credentials[0] : credentials.find((each) => each.provider === provider);
    if (!found) {
      throw provider === null || credentials.length === 0
        ? noGitProvider()
        : noTokenOf(provider, 'unauthorized');
    }
    return found;
  }
}

function domainError(error: unknown): DomainError {
  if (error instanceof DomainError) {
    return error;
  }
  throw error;
}

function cacheOf<T>(clock: Clock): ProviderCache<Listing<T>> {
  return new ProviderCache(clock, {
    maxEntries: MAX_ENTRIES,
    maxItems: MAX_ITEMS,
    countItems: ({ items }) => items.length,
  });
}

/** Users paste the address of a repository's page. */
function withoutAddress(text: string): string {
  return text
    .replace(/^https?:\/\/[^/]*\//i, '')
    .replace(/\/+$/, '')
    .replace(/\.git$/, '');
}
