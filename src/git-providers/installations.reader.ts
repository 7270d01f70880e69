import type { GithubInstallation } from '@slipway/git-providers/github/github.app.js';
import {
  GitProviderError,
  type ProviderCall,
  type ProviderUser,
  type ProviderWork,
} from '@slipway/git-providers/git-provider.js';
import type { GitReader } from './provider-cache.js';
import { combinedError, GapLog, orFailure } from '@slipway/git-providers/provider-errors.js';
import {
  type BranchQuery,
  type FoundBranch,
  type FoundRepository,
  type Listing,
  type ListRange,
  type RepositoryQuery,
  sliceOf,
} from '@slipway/git-providers/repository-lists.js';
import type { InstallationTokens } from './tokens/installation-tokens.js';

/** Each is asked for itself. */
const MAX_ASKED = 10;
/** Of repositories of one installation, a hundred each. */
const MAX_PAGES = 3;
const PAGE = 100;

/** What the installations that stand in for a user have, read as one provider: each by a token of its own. */
export class InstallationsReader implements GitReader {
  readonly kind;
  readonly workPolicy;

  constructor(
    private readonly github: GitReader,
    private readonly tokens: InstallationTokens,
    private readonly userId: string,
    /** Null: not known, and nothing of theirs can be found. */
    private readonly login: string | null,
  ) {
    this.kind = github.kind;
    this.workPolicy = github.workPolicy;
  }

  serverOf(host: string | null): string {
    return this.github.serverOf(host);
  }

  cloneUrl(host: string | null, repository: string): string {
    return this.github.cloneUrl(host, repository);
  }

  async findWork(call: ProviderCall): Promise<ProviderWork> {
    const login = this.requireLogin();
    const found = await this.ofEach(call, async (own, installation) => {
      const work = await this.github.findWork({ ...own, standIn: { login } });
      return await this.within(installation, work);
    });
    const all = found.flatMap((each) => (each instanceof GitProviderError ? [] : [each]));
    const failures = found.filter((each) => each instanceof GitProviderError);
    const gaps = new GapLog();
    failures.forEach((failure) => gaps.note(failure));
    return {
      changeRequests: all.flatMap(({ changeRequests }) => changeRequests),
      issues: all.flatMap(({ issues }) => issues),
      recentRepositories: all.flatMap(({ recentRepositories }) => recentRepositories),
      probedRepositories: all.flatMap(({ probedRepositories }) => probedRepositories),
      truncated: all.some(({ truncated }) => truncated),
      gaps: [...new Set([...gaps.codes(), ...all.flatMap((work) => work.gaps)])],
      gapReasons: Object.assign(gaps.reasons(), ...all.map(({ gapReasons }) => gapReasons)),
    };
  }

  /** @throws GitProviderError needs_login where the user's login there is not known */
  async getUser(call: ProviderCall): Promise<ProviderUser> {
    const login = this.requireLogin();
    const [installation] = await this.installations();
    const token = await this.tokens.ownerToken(this.userId, installation);
    return await this.github.getUser({ ...call, token, standIn: { login } });
  }

  /** The most recently active first; sorted by what is read, as an installation cannot be searched. */
  async searchRepositories(query: RepositoryQuery, call: ProviderCall): Promise<Listing<FoundRepository>> {
    const found = await this.ofEach(call, (own) => this.repositoriesOf(own, query), query.installation);
    const listed = found.flatMap((each) => (each instanceof GitProviderError ? [] : each));
    const text = query.text?.toLowerCase() ?? '';
    const named = listed.filter(({ name }) => name.toLowerCase().includes(text));
    const isAllowed = await this.tokens.policyFor(this.userId);
    const allowed = named.filter(({ name }) => isAllowed(name));
    return sliceOf(
      allowed.toSorted((a, b) => (b.activeAt ?? 0) - (a.activeAt ?? 0)),
      query,
    );
  }

  async searchBranches(query: BranchQuery, call: ProviderCall): Promise<Listing<FoundBranch>> {
    const token = await this.tokens.token(this.userId, query.repository, 'service');
    return await this.github.searchBranches(query, { ...call, token });
  }

  async listInstallations(range: ListRange): Promise<Listing<string>> {
    const all = await this.tokens.installationsFor(this.userId);
    return sliceOf(
      all.map(({ id }) => String(id)),
      range,
    );
  }

  private requireLogin(): string {
    if (this.login === null) {
      throw new GitProviderError('needs_login', { said: NEEDS_LOGIN });
    }
    return this.login;
  }

  private async repositoriesOf(call: ProviderCall, query: RepositoryQuery): Promise<FoundRepository[]> {
    const found: FoundRepository[] = [];
    let position: number | null = 1;
    for (let page = 0; page < MAX_PAGES && position !== null; page += 1) {
      const range = { position, limit: PAGE, text: null, installation: null, sort: query.sort };
      const listing: Listing<FoundRepository> = await this.github.searchRepositories(range, {
        ...call,
        standIn: { login: this.login },
      });
      found.push(...listing.items);
      position = listing.next;
    }
    return found;
  }

  /** A user has more elsewhere, which others may see too. */
  private async within({ owner }: GithubInstallation, work: ProviderWork): Promise<ProviderWork> {
    const isAllowed = await this.tokens.policyFor(this.userId);
    const isHere = (name: string): boolean =>
      name.toLowerCase().startsWith(`${owner.toLowerCase()}/`) && isAllowed(name);
    return {
      ...work,
      changeRequests: work.changeRequests.filter(({ repository }) => isHere(repository.name)),
      issues: work.issues.filter(({ repository }) => isHere(repository.name)),
      recentRepositories: work.recentRepositories.filter(({ name }) => isHere(name)),
      probedRepositories: work.probedRepositories.filter(({ name }) => isHere(name)),
    };
  }

  /** @throws GitProviderError where all have failed */
  private async ofEach<T>(
    call: ProviderCall,
    ask: (call: ProviderCall, installation: GithubInstallation) => Promise<T>,
    id: string | null = null,
  ): Promise<(T | GitProviderError)[]> {
    const all = await this.installations(id);
    const asked = all.slice(0, MAX_ASKED).map(async (installation) => {
      const token = await this.tokens.ownerToken(this.userId, installation);
      return await ask({ ...call, token }, installation);
    });
    const found = await Promise.all(asked.map((each) => orFailure(each)));
    const failures = found.filter((each) => each instanceof GitProviderError);
    if (failures.length === found.length) {
      throw combinedError(failures);
    }
    return found;
  }

  private async installations(
    id: string | null = null,
  ): Promise<[GithubInstallation, ...GithubInstallation[]]> {
    const all = await this.tokens.installationsFor(this.userId);
    const [first, ...others] = all.filter((each) => id === null || String(each.id) === id);
    if (first === undefined) {
      throw new GitProviderError('not_linked', { said: NONE });
    }
    return [first, ...others];
  }
}

const NEEDS_LOGIN =
  'Your login at GitHub is not known: send it as `login` beside `installation`, or the operator names a claim that has it (OIDC_GITHUB_LOGIN_CLAIM)';
const NONE =
  'No installation of the GitHub App stands in for you: it is installed nowhere that GITHUB_APP_FOR allows you';
