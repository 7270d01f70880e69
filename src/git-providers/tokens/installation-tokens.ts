import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import { Clock } from '@slipway/common/clock.js';
import { AppConfig } from '../../config/app-config.js';
import { type GithubPermissions, PERMISSION_LEVELS } from '@slipway/git-providers/public-git-servers.js';
import { boundedCall, GitProviderError } from '@slipway/git-providers/git-provider.js';
import {
  GithubApp,
  type GithubInstallation,
  type IssuedToken,
} from '@slipway/git-providers/github/github.app.js';
import { lacking, notInstalled, suspended } from '@slipway/git-providers/github/github.app-refusals.js';
import { GitHttpClient } from '../git-http.client.js';
import { mayStandIn, StandIns } from './stand-ins.js';

/** `sandbox`: what an agent works with; `read`: other repositories of a sandbox; `service`: our own calls. */
export type TokenUse = 'sandbox' | 'read' | 'service';

const TIMEOUT_MS = 8_000;
/** Before the end that GitHub says: what begins with a token ends with it. */
const EARLY_MS = 10 * 60_000;
/** An hour's token that could not be replaced is used on until then. */
const LAST_MS = 60_000;
/** A host in trouble, or an App that is not installed, is not asked by each request. */
const FAILED_MS = 20_000;
/** Of each token. */
const PREFIX = 'ghs_';
/** A sandbox has few; each has about 1 kB. */
const MAX_TOKENS = 5_000;

const NEEDED: Record<TokenUse, GithubPermissions> = {
  sandbox: { contents: 'write', pull_requests: 'write', metadata: 'read' },
  read: { contents: 'read', metadata: 'read' },
  service: { contents: 'write', pull_requests: 'write', metadata: 'read' },
};
/** Besides, as far as an installation has it. */
const WANTED: Record<Exclude<TokenUse, 'sandbox'>, GithubPermissions> = {
  read: { packages: 'read' },
  service: { issues: 'read', checks: 'read', statuses: 'read', actions: 'read' },
};

interface Kept {
  issued: IssuedToken | null;
  /** Under way, or failed a moment ago. */
  asking: Promise<IssuedToken> | null;
  askedAt: number;
}

/**
 * Tokens of the operator's GitHub App. This is the only place that gives one out, to users that it may stand in for and
 * for repositories that it may do so for. Each process has tokens of its own, in memory alone.
 */
@Injectable()
export class InstallationTokens {
  private readonly logger = new Logger(InstallationTokens.name);
  private readonly app: GithubApp | null;
  private readonly kept = new BoundedCache<string, Kept>(MAX_TOKENS);
  /** Until a token ends, by the token. */
  private readonly repositories: BoundedCache<string, string>;
  /** That tokens have had, which are few: by them a token is found in a text without a look at all others. */
  private readonly lengths = new Set<number>();

  constructor(
    http: GitHttpClient,
    private readonly config: AppConfig,
    private readonly standIns: StandIns,
    private readonly clock: Clock,
  ) {
    const { githubApp, servers } = config.git;
    const now = (): number => clock.now();
    this.app =
      githubApp &&
      new GithubApp(
        http,
        { apiUrl: servers.github.apiUrl, id: githubApp.id, privateKey: githubApp.privateKey },
        now,
      );
    this.repositories = new BoundedCache(2 * MAX_TOKENS, { perf: { now }, ttlResolution: 0 });
  }

  /**
   * A token for one repository (`owner/name`).
   * @throws GitProviderError with a `reason`: the App may not stand in for the user there, is not installed, is suspended, lacks
   *   permissions; or as any call
   */
  async token(userId: string, repository: string, use: TokenUse): Promise<string> {
    if (!mayStandIn(await this.standIns.of(userId), repository)) {
      throw new KeptFromError(repository);
    }
    // One for each spelling: it is put in towards addresses of the name that it is known by.
    const { token, expiresAt } = await this.current(`${use} ${repository}`, async () =>
      this.issueFor(repository, use),
    );
    const ttl = Math.max(expiresAt - this.clock.now(), 1);
    if (!this.repositories.has(token)) {
      this.repositories.set(token, repository, { ttl });
      this.lengths.add(token.length);
    }
    return token;
  }

  /** Of repositories (`owner/name`), whether it may be stood in for the user there. */
  async policyFor(userId: string): Promise<(repository: string) => boolean> {
    const standIn = await this.standIns.of(userId);
    return (repository) => mayStandIn(standIn, repository);
  }

  /** At GitHub, as the issuer says; null: it does not. */
  async loginOf(userId: string): Promise<string | null> {
    return (await this.standIns.of(userId)).login;
  }

  /** For what of the user it stands in now, as a text that is another one whenever that changes. */
  async standInOf(userId: string): Promise<string> {
    return JSON.stringify(await this.standIns.of(userId));
  }

  /** Tokens of this process in a text, until they end, each with its repository. */
  issuedIn(text: string): { token: string; repository: string }[] {
    return this.beginningsIn(text).flatMap((start) => {
      const texts = [...this.lengths].map((length) => text.slice(start, start + length));
      const token = texts.find((each) => this.repositories.has(each));
      const repository = token === undefined ? undefined : this.repositories.peek(token);
      return token === undefined || repository === undefined ? [] : [{ token, repository }];
    });
  }

  /** Texts may be megabytes of nothing but beginnings: no token is shorter than the shortest, and none begins within another. */
  private beginningsIn(text: string): number[] {
    const shortest = Math.min(...this.lengths);
    const starts: number[] = [];
    for (let start = text.indexOf(PREFIX), next: number; start >= 0; start = next) {
      next = text.indexOf(PREFIX, start + 1);
      if ((next < 0 ? text.length : next) - start >= shortest) {
        starts.push(start);
      }
    }
    return starts;
  }

  /** Those that may stand in for the user. @throws GitProviderError */
  async installationsFor(userId: string): Promise<GithubInstallation[]> {
    const { repositories } = await this.standIns.of(userId);
    const owners = repositories.map((pattern) => pattern.split('/', 1)[0]);
    const all = repositories.length === 0 ? [] : await this.required.installations(this.bounds());
    return all.filter(
      ({ owner, isSuspended }) =>
        !isSuspended && (owners.includes('*') || owners.includes(owner.toLowerCase())),
    );
  }

  /**
   * A token for our own calls about all that an installation has and the user may be stood in for there.
   * @throws GitProviderError
   */
  async ownerToken(userId: string, installation: GithubInstallation): Promise<string> {
    const { repositories } = await this.standIns.of(userId);
    const owner = installation.owner.toLowerCase();
    const isWhole = repositories.some((pattern) => pattern === '*' || pattern === `${owner}/*`);
    const names = repositories
      .filter((each) => each.startsWith(`${owner}/`))
      .map((each) => each.slice(owner.length + 1));
    const scope = isWhole ? null : names;
    if (scope?.length === 0) {
      throw new KeptFromError(installation.owner);
    }
    const key = `owner ${installation.id} ${scope?.toSorted().join(' ') ?? '*'}`;
    const issued = await this.current(key, async () => {
      const permissions = granted(installation, 'service', {});
      const issue = async (within: readonly string[] | null): Promise<IssuedToken> =>
        await this.required.issue(installation, { repositories: within, permissions }, this.bounds());
      try {
        return await issue(scope);
      } catch (error) {
        const left = scope === null ? [] : await this.had(installation, scope);
        // GitHub refuses all of a list for one that it does not know.
        if (left.length === 0 || left.length === scope?.length) {
          throw error;
        }
        const missing = names.filter((name) => !left.includes(name));
        this.logger.warn('repositories of GITHUB_APP_FOR left out', { owner, repositories: missing });
        return await issue(left);
      }
    });
    return issued.token;
  }

  /** Those of its owner's repositories that an installation has. @throws GitProviderError */
  private async had({ id, owner }: GithubInstallation, names: readonly string[]): Promise<string[]> {
    const asked = names.map(async (name) => {
      const found = await this.required.installationOf(`${owner}/${name}`, this.bounds());
      return found?.id === id ? [name] : [];
    });
    return (await Promise.all(asked)).flat();
  }

  /**
   * A token that reads alone: of one repository, or of all that the installation of an owner has.
   * @throws GitProviderError as {@link token}
   */
  async readToken(userId: string, { path, isWide }: { path: string; isWide: boolean }): Promise<string> {
    if (!isWide) {
      return await this.token(userId, path, 'read');
    }
    if (!mayStandIn(await this.standIns.of(userId), `${path}/*`)) {
      throw new KeptFromError(path);
    }
    const issued = await this.current(`read ${path.toLowerCase()}/*`, async () => {
      const all = await this.required.installations(this.bounds());
      const installation = all.find(({ owner }) => owner.toLowerCase() === path.toLowerCase());
      if (installation === undefined) {
        throw new GitProviderError('not_linked', { reason: notInstalled(path) });
      }
      const permissions = granted(installation, 'read', {});
      return await this.required.issue(installation, { repositories: null, permissions }, this.bounds());
    });
    return issued.token;
  }

  private get required(): GithubApp {
    if (this.app === null) {
      throw new GitProviderError('unsupported', { reason: NO_APP });
    }
    return this.app;
  }

  private async issueFor(repository: string, use: TokenUse): Promise<IssuedToken> {
    const bounds = this.bounds();
    const installation = await this.required.installationOf(repository, bounds);
    const [owner = '', name = ''] = repository.split('/');
    // GitHub leads the name of a repository that was given away to its new owner, whom GITHUB_APP_FOR may not name.
    if (installation?.owner.toLowerCase() !== owner.toLowerCase()) {
      throw new GitProviderError('not_linked', { reason: notInstalled(repository) });
    }
    const wanted = this.config.git.githubApp?.sandboxPermissions ?? {};
    const permissions = granted(installation, use, wanted);
    return await this.required.issue(installation, { repositories: [name], permissions }, bounds);
  }

  private async current(key: string, issue: () => Promise<IssuedToken>): Promise<IssuedToken> {
    const now = this.clock.now();
    const known = this.kept.get(key) ?? { issued: null, asking: null, askedAt: 0 };
    if (known.issued !== null && now < known.issued.expiresAt - EARLY_MS) {
      return known.issued;
    }
    if (known.asking === null || now - known.askedAt >= FAILED_MS) {
      known.askedAt = now;
      known.asking = this.noted(key, known, issue());
      this.kept.set(key, known);
    }
    try {
      return await known.asking;
    } catch (error) {
      if (known.issued !== null && this.clock.now() < known.issued.expiresAt - LAST_MS) {
        return known.issued;
      }
      throw error;
    }
  }

  private async noted(key: string, known: Kept, asked: Promise<IssuedToken>): Promise<IssuedToken> {
    try {
      known.issued = await asked;
      known.asking = null;
      return known.issued;
    } catch (error) {
      const code = error instanceof GitProviderError ? error.code : 'unknown';
      const reason = error instanceof GitProviderError ? error.reason : errorMessage(error);
      this.logger.warn('failed to get a token of the GitHub App', { place: key, code, reason });
      throw error;
    }
  }

  private bounds(): ReturnType<typeof boundedCall> {
    return boundedCall(TIMEOUT_MS, this.clock.now());
  }
}

const NO_APP = 'the operator has no GitHub App any more (GITHUB_APP_ID): store a token of your own';

/** The operator does not let the App stand in for the user at a place. */
class KeptFromError extends GitProviderError {
  constructor(place: string) {
    const reason = `the GitHub App does not stand in for you at ${place}: ask the operator for it (GITHUB_APP_FOR), or store a token of your own`;
    super('blocked_by_policy', { reason });
  }
}

export function isKeptFrom(error: GitProviderError): boolean {
  return error instanceof KeptFromError;
}

function rank(level: string | undefined): number {
  return PERMISSION_LEVELS.findIndex((each) => each === level);
}

/** What a token gets of what its installation has. @throws GitProviderError where that is too little */
function granted(
  { owner, isSuspended, permissions: has }: Pick<GithubInstallation, 'owner' | 'isSuspended' | 'permissions'>,
  use: TokenUse,
  forSandboxes: GithubPermissions,
): GithubPermissions {
  if (isSuspended) {
    throw new GitProviderError('blocked_by_policy', { reason: suspended(owner) });
  }
  const needed = NEEDED[use];
  const missing = Object.entries(needed).filter(([name, level]) => rank(has[name]) < rank(level));
  if (missing.length > 0) {
    const what = missing.map((entry) => entry.join(': ')).join(', ');
    throw new GitProviderError('insufficient_scope', { reason: lacking(owner, what) });
  }
  const wanted = use === 'sandbox' ? forSandboxes : WANTED[use];
  const given = Object.entries(wanted).flatMap(([name, level]) => {
    const least = rank(has[name]) < rank(level) ? has[name] : level;
    return least === undefined || rank(needed[name]) >= rank(least) ? [] : [[name, least] as const];
  });
  return { ...needed, ...Object.fromEntries(given) };
}
