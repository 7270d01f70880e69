import { Injectable, Logger } from '@nestjs/common';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import type { Forks } from '@slipway/git-providers/forks.js';
import { gitProviderProblem, noTokenOf } from './git-provider-problem.js';
import {
  type ActorRights,
  type ChangeRequests,
  type GitCredential,
  type GitProvider,
  GitProviderError,
  type HostActor,
  type ProviderCall,
  type ProviderType,
} from '@slipway/git-providers/git-provider.js';
import { GitProviderRegistry } from '@slipway/git-providers/git-provider.registry.js';
import { GIT_SERVERS, providerOfSource } from '@slipway/git-providers/git-servers.js';
import { orFailure } from '@slipway/git-providers/provider-errors.js';
import { ProviderCalls } from './provider-reader.js';
import type { StoredCredential } from './tokens/provider-token.repository.js';
import { InstallationTokens, isKeptFrom, type TokenUse } from './tokens/installation-tokens.js';
import { TokenRenewals } from './tokens/token-renewals.js';

export interface CloneAccess {
  provider: ProviderType;
  url: string;
  /** The user's credential; null for anonymous access, when there is no token for the provider. */
  credential: GitCredential | null;
  /** Why the operator's GitHub App gives none, and what to do; absent: it was not asked, or does. */
  withheld?: string;
}

interface RepositoryCredential {
  provider: ProviderType;
  credential: StoredCredential | null;
}

/** Includes asking Keycloak, or Data Center for the user's name. */
const CLONE_ACCESS_TIMEOUT_MS = 12_000;
/** At most four requests, each with its own deadline. Agents wait for a minute. */
const CHANGE_REQUEST_TIMEOUT_MS = 45_000;
/** Hosts wait ten seconds for the answer to an event. */
const RIGHTS_TIMEOUT_MS = 8_000;
const RIGHTS_MS = 300_000;
const MAX_RIGHTS = 10_000;
/** A name that is possible everywhere, for questions about a server only. */
const ANY_REPOSITORY = 'octo/app';

/** What users' tokens let git and agents do with a repository: clone, fetch, push, and open change requests. */
@Injectable()
export class RepositoryAccessService {
  private readonly logger = new Logger(RepositoryAccessService.name);
  private readonly rights = new BoundedCache<string, Promise<ActorRights>>(MAX_RIGHTS, {
    ttl: RIGHTS_MS,
  });

  constructor(
    private readonly tokens: TokenRenewals,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
    private readonly installations: InstallationTokens,
  ) {}

  /**
   * Takes the user's first provider that allows such a name if none is given, else GitHub.
   * @throws DomainError for an impossible name, an ended sign-in, a provider that does not respond
   */
  async cloneAccess(userId: string, provider: ProviderType | null, repository: string): Promise<CloneAccess> {
    return await this.accessTo(userId, await this.choose(userId, provider, repository), repository);
  }

  /**
   * Credentials with tokens of the installations that stand in, for one repository (null: none). One that has none stays without,
   * which is logged.
   */
  async withTokensFor(
    userId: string,
    credentials: readonly StoredCredential[],
    work: { repository: string; provider: ProviderType | null } | null,
  ): Promise<StoredCredential[]> {
    const all = credentials.map(async (credential) => {
      const isOther = work === null || (work.provider ?? 'github') !== credential.provider;
      if (!credential.installation || isOther) {
        return credential;
      }
      const usable = await orFailure(this.usable(userId, credential, work.repository, 'sandbox'));
      return usable instanceof GitProviderError ? credential : usable;
    });
    return await Promise.all(all);
  }

  /** Credentials for the server of a stored token; null if git needs none. @throws DomainError as `cloneAccess` */
  async serverCredential(
    userId: string,
    credential: StoredCredential,
  ): Promise<{ tokenVariable: string; access: GitCredential & { origin: string } } | null> {
    if (credential.installation && credential.token === '') {
      // Its tokens are for one repository each: see `withTokensFor`.
      return null;
    }
    const chosen = { provider: credential.provider, credential };
    const { url, credential: own } = await this.accessTo(userId, chosen, ANY_REPOSITORY);
    const { kind } = await this.registry.providerFor(credential.provider, credential.host);
    const { tokenVariable } = GIT_SERVERS[kind];
    return own && { tokenVariable, access: { ...own, origin: new URL(url).origin } };
  }

  /**
   * Works with the change requests of a repository with the user's token.
   * @throws DomainError no_git_provider, or what the provider's failure or refusal means
   */
  async changeRequests<T>(
    userId: string,
    provider: ProviderType | null,
    repository: string,
    work: (changes: ChangeRequests) => Promise<T>,
  ): Promise<T> {
    const { provider: chosen, credential } = await this.chooseForService(userId, provider, repository);
    const bounds = { what: 'a change request', milliseconds: CHANGE_REQUEST_TIMEOUT_MS };
    return await this.ask(userId, chosen, credential, bounds, (adapter, call) =>
      adapter.changeRequests(call, work),
    );
  }

  /**
   * Works with forks with the user's token.
   * @param waits for one to be made, which takes longer than to ask
   * @throws DomainError as `changeRequests`
   */
  async forks<T>(
    userId: string,
    { provider, repository, waits }: { provider: ProviderType | null; repository: string; waits: boolean },
    work: (forks: Forks) => Promise<T>,
  ): Promise<T> {
    const { provider: chosen, credential } = await this.chooseForService(userId, provider, repository);
    const bounds = { what: 'a fork', milliseconds: waits ? CHANGE_REQUEST_TIMEOUT_MS : RIGHTS_TIMEOUT_MS };
    return await this.ask(userId, chosen, credential, bounds, (adapter, call) => adapter.forks(call, work));
  }

  /**
   * What an account may do in a repository; an answer is kept for five minutes.
   * @param provider or the source of the host's webhooks
   * @throws DomainError as `changeRequests`
   */
  async rightsOf(
    userId: string,
    provider: ProviderType | { source: string } | null,
    repository: string,
    actor: HostActor,
  ): Promise<ActorRights> {
    const chosen = await this.chooseWithToken(userId, provider, repository);
    const { host, updatedAt } = chosen.credential;
    const account = [actor.name, actor.id];
    const key = JSON.stringify([userId, chosen.provider, host, updatedAt, repository.toLowerCase(), account]);
    const known = this.rights.get(key);
    if (known !== undefined) {
      return await known;
    }
    const bounds = { what: 'the rights of an account', milliseconds: RIGHTS_TIMEOUT_MS };
    const asked = this.forService(userId, chosen, repository).then(({ credential }) =>
      this.ask(userId, chosen.provider, credential, bounds, (adapter, call) =>
        adapter.rightsOf(actor, repository, call),
      ),
    );
    this.rights.set(key, asked);
    // Those who wait for it hear of a failure.
    asked.catch(() => this.rights.delete(key));
    return await asked;
  }

  private async ask<T>(
    userId: string,
    provider: ProviderType,
    credential: StoredCredential,
    { what, milliseconds }: { what: string; milliseconds: number },
    question: (adapter: GitProvider, call: ProviderCall) => Promise<T>,
  ): Promise<T> {
    try {
      const adapter = await this.registry.providerFor(provider, credential.host);
      return await question(adapter, this.calls.withStored(milliseconds, userId, credential));
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn(`failed to ask about ${what}`, { provider, code: error.code });
      throw gitProviderProblem(provider, error);
    }
  }

  private async accessTo(
    userId: string,
    { provider, credential }: RepositoryCredential,
    repository: string,
  ): Promise<CloneAccess> {
    try {
      const adapter = await this.registry.providerFor(provider, credential?.host ?? null);
      const url = adapter.cloneUrl(credential?.host ?? null, repository);
      if (!credential) {
        return { provider, url, credential };
      }
      const usable = await orFailure(this.usable(userId, credential, repository, 'sandbox'));
      if (usable instanceof GitProviderError) {
        if (usable.code !== 'not_linked' && !isKeptFrom(usable)) {
          throw usable;
        }
        // A public repository is cloned without any.
        return { provider, url, credential: null, withheld: usable.reason ?? usable.message };
      }
      const call = this.calls.withStored(CLONE_ACCESS_TIMEOUT_MS, userId, usable);
      return { provider, url, credential: await adapter.gitCredential(call) };
    } catch (error) {
      throw error instanceof GitProviderError ? gitProviderProblem(provider, error) : error;
    }
  }

  private async chooseWithToken(
    userId: string,
    provider: ProviderType | { source: string } | null,
    repository: string,
  ): Promise<{ provider: ProviderType; credential: StoredCredential }> {
    const chosen = await this.choose(userId, provider, repository);
    if (!chosen.credential) {
      throw noTokenOf(chosen.provider, 'conflict');
    }
    return { provider: chosen.provider, credential: chosen.credential };
  }

  private async chooseForService(
    userId: string,
    provider: ProviderType | null,
    repository: string,
  ): Promise<{ provider: ProviderType; credential: StoredCredential }> {
    return await this.forService(
      userId,
      await this.chooseWithToken(userId, provider, repository),
      repository,
    );
  }

  private async forService(
    userId: string,
    { provider, credential }: { provider: ProviderType; credential: StoredCredential },
    repository: string,
  ): Promise<{ provider: ProviderType; credential: StoredCredential }> {
    try {
      return { provider, credential: await this.usable(userId, credential, repository, 'service') };
    } catch (error) {
      throw error instanceof GitProviderError ? gitProviderProblem(provider, error) : error;
    }
  }

  /** One with a token for this repository. @throws GitProviderError */
  private async usable(
    userId: string,
    credential: StoredCredential,
    repository: string,
    use: TokenUse,
  ): Promise<StoredCredential> {
    return credential.installation && credential.token === ''
      ? { ...credential, token: await this.installations.token(userId, repository, use) }
      : credential;
  }

  private async choose(
    userId: string,
    provider: ProviderType | { source: string } | null,
    repository: string,
  ): Promise<RepositoryCredential> {
    const credentials = await this.tokens.current(userId);
    if (typeof provider === 'string') {
      return { provider, credential: credentials.find((each) => each.provider === provider) ?? null };
    }
    for (const credential of credentials) {
      if (await this.canHave(credential, repository, provider?.source ?? null)) {
        return { provider: credential.provider, credential };
      }
    }
    return { provider: providerOfSource(provider?.source ?? 'github'), credential: null };
  }

  /** Only GitLab has names of more than two parts; enterprise_sso may no longer be configured. */
  private async canHave(
    { provider, host }: StoredCredential,
    repository: string,
    source: string | null,
  ): Promise<boolean> {
    try {
      const adapter = await this.registry.providerFor(provider, host);
      adapter.cloneUrl(host, repository);
      return source === null || GIT_SERVERS[adapter.kind].webhooks.source === source;
    } catch (error) {
      if (error instanceof GitProviderError) {
        return false;
      }
      throw error;
    }
  }
}
