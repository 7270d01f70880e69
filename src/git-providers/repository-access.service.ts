import { Injectable, Logger } from '@nestjs/common';
import { gitProviderProblem, noTokenOf } from './git-provider-problem.js';
import {
  type ChangeRequests,
  type GitCredential,
  GitProviderError,
  type ProviderType,
} from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import { GIT_SERVERS } from './git-servers.js';
import { ProviderCalls } from './provider-reader.js';
import { ProviderTokenRepository, type StoredCredential } from './tokens/provider-token.repository.js';

export interface CloneAccess {
  provider: ProviderType;
  url: string;
  /** Null for anonymous access, without a token for the provider. */
  credential: GitCredential | null;
  /** Of the token, in the environment of tools. */
  tokenVariable: string;
}

interface RepositoryCredential {
  provider: ProviderType;
  credential: StoredCredential | null;
}

/** Includes asking Keycloak, or Data Center for the user's name. */
const CLONE_ACCESS_TIMEOUT_MS = 12_000;
/** At most four requests, each with its own deadline. Agents wait for a minute. */
const CHANGE_REQUEST_TIMEOUT_MS = 45_000;
/** A name that is possible everywhere, for questions about a server only. */
const ANY_REPOSITORY = 'octo/app';

/** What users' tokens let git and agents do with a repository: clone, fetch, push, and open change requests. */
@Injectable()
export class RepositoryAccessService {
  private readonly logger = new Logger(RepositoryAccessService.name);

  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * Without a provider, the first of the user's where such a name is possible, else GitHub.
   * @throws DomainError for an impossible name, an ended sign-in, a provider that does not respond
   */
  async cloneAccess(userId: string, provider: ProviderType | null, repository: string): Promise<CloneAccess> {
    return await this.accessTo(userId, await this.choose(userId, provider, repository), repository);
  }

  /** Credentials for the server of a stored token; null if git needs none. @throws DomainError as `cloneAccess` */
  async serverCredential(
    userId: string,
    credential: StoredCredential,
  ): Promise<{ tokenVariable: string; access: GitCredential & { origin: string } } | null> {
    const chosen = { provider: credential.provider, credential };
    const { tokenVariable, url, credential: own } = await this.accessTo(userId, chosen, ANY_REPOSITORY);
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
    const chosen = await this.choose(userId, provider, repository);
    const { credential } = chosen;
    if (!credential) {
      throw noTokenOf(chosen.provider, 'conflict');
    }
    try {
      const adapter = await this.registry.providerFor(chosen.provider, credential.host);
      const call = this.calls.withStored(CHANGE_REQUEST_TIMEOUT_MS, userId, credential);
      return await adapter.changeRequests(call, work);
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn('failed to ask about a change request', {
        provider: chosen.provider,
        code: error.code,
      });
      throw gitProviderProblem(chosen.provider, error);
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
      const { tokenVariable } = GIT_SERVERS[adapter.kind];
      if (!credential) {
        return { provider, url, credential, tokenVariable };
      }
      const call = this.calls.withStored(CLONE_ACCESS_TIMEOUT_MS, userId, credential);
      return { provider, url, credential: await adapter.gitCredential(call), tokenVariable };
    } catch (error) {
      throw error instanceof GitProviderError ? gitProviderProblem(provider, error) : error;
    }
  }

  private async choose(
    userId: string,
    provider: ProviderType | null,
    repository: string,
  ): Promise<RepositoryCredential> {
    const credentials = await this.tokens.list(userId);
    if (provider !== null) {
      return { provider, credential: credentials.find((each) => each.provider === provider) ?? null };
    }
    for (const credential of credentials) {
      if (await this.canHave(credential, repository)) {
        return { provider: credential.provider, credential };
      }
    }
    return { provider: 'github', credential: null };
  }

  /** Only GitLab has names of more than two parts; enterprise_sso may no longer be configured. */
  private async canHave({ provider, host }: StoredCredential, repository: string): Promise<boolean> {
    try {
      (await this.registry.providerFor(provider, host)).cloneUrl(host, repository);
      return true;
    } catch (error) {
      if (error instanceof GitProviderError) {
        return false;
      }
      throw error;
    }
  }
}
