import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { DomainError } from '../common/errors/domain-error.js';
import { gitProviderProblem } from './git-provider-problem.js';
import {
  type GitCredential,
  type GitProvider,
  GitProviderError,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderCall,
  type ProviderType,
} from './git-provider.js';
import { GitProviderRegistry } from './git-provider.registry.js';
import { ProviderTokenRepository, type StoredCredential } from './tokens/provider-token.repository.js';

/** Bounds calls that are made for a user, and keeps a token whose successor comes to light in one of them. */
@Injectable()
export class ProviderCalls {
  constructor(
    private readonly reader: ProviderTokenRepository,
    private readonly clock: Clock,
  ) {}

  /** @param milliseconds from now on */
  within(milliseconds: number, userId: string, { provider, token }: StoredCredential): ProviderCall {
    let current = token;
    return {
      signal: AbortSignal.timeout(milliseconds),
      deadlineAt: this.clock.now() + milliseconds,
      replaceToken: async (successor) => {
        await this.reader.replaceToken(userId, provider, current, successor);
        current = successor;
      },
    };
  }
}

/** Where a repository is, and the user's token for it. */
interface RepositoryCredential {
  provider: ProviderType;
  /** Null: the user has none for the provider. */
  credential: StoredCredential | null;
}

/** Finds the token that goes with a repository. */
@Injectable()
export class RepositoryCredentials {
  constructor(
    private readonly reader: ProviderTokenRepository,
    private readonly registry: GitProviderRegistry,
  ) {}

  /**
   * @param provider null: the first of the user's providers where a repository can have such a name, else GitHub
   * @param repository `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`
   */
  async choose(
    userId: string,
    provider: ProviderType | null,
    repository: string,
  ): Promise<RepositoryCredential> {
    const credentials = await this.reader.list(userId);
    const credential = credentials.find((candidate) =>
      provider === null ? this.canHave(candidate, repository) : candidate.provider === provider,
    );
    return { provider: provider ?? credential?.provider ?? 'github', credential: credential ?? null };
  }

  /** @throws GitProviderError `unsupported` for enterprise_sso that is not configured (any more) */
  adapterFor({ provider, credential }: RepositoryCredential): GitProvider {
    return this.registry.providerFor(provider, credential?.host ?? null);
  }

  /** Only GitLab has names of more than two parts; enterprise_sso may not be configured any more. */
  private canHave({ provider, host }: StoredCredential, repository: string): boolean {
    try {
      this.registry.providerFor(provider, host).cloneUrl(host, repository);
      return true;
    } catch (error) {
      if (error instanceof GitProviderError) {
        return false;
      }
      throw error;
    }
  }
}

/** Four requests at most, each with a deadline of its own. Agents wait for a minute. */
const DEADLINE_MS = 45_000;

/** Opens pull and merge requests with users' tokens. */
@Injectable()
export class ChangeRequestsService {
  private readonly logger = new Logger(ChangeRequestsService.name);

  constructor(
    private readonly credentials: RepositoryCredentials,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * Opens one, or answers the one that is open for the same branches already.
   *
   * @param provider null: as `RepositoryCredentials.choose` says
   * @throws DomainError no_git_provider without a token, else what the provider's failure or refusal means
   */
  async open(
    userId: string,
    provider: ProviderType | null,
    request: NewChangeRequest,
  ): Promise<OpenedChangeRequest> {
    const chosen = await this.credentials.choose(userId, provider, request.repository);
    const { credential } = chosen;
    if (!credential) {
      throw new DomainError(
        'conflict',
        'no_git_provider',
        `There is no ${chosen.provider} token: store one with POST /api/add-git-providers.`,
      );
    }
    try {
      return await this.credentials
        .adapterFor(chosen)
        .openChangeRequest(credential, request, this.calls.within(DEADLINE_MS, userId, credential));
    } catch (error) {
      if (!(error instanceof GitProviderError)) {
        throw error;
      }
      this.logger.warn('git provider failed', { provider: chosen.provider, code: error.code });
      throw gitProviderProblem(chosen.provider, error);
    }
  }
}

/** How git gets at a repository. */
export interface CloneAccess {
  /** Where the repository is, also when nobody said. */
  provider: ProviderType;
  /** http or https, without credentials. */
  url: string;
  /** Null: anonymously, as the user has no token for the provider. */
  credential: GitCredential | null;
}

/** Asking Keycloak, or Data Center for the user's name. */
const CLONE_ACCESS_SERVICE_DEADLINE_MS = 12_000;

/** Tells how git clones, fetches and pushes a user's repositories. */
@Injectable()
export class CloneAccessService {
  constructor(
    private readonly credentials: RepositoryCredentials,
    private readonly calls: ProviderCalls,
  ) {}

  /**
   * @param provider null: the first of the user's providers where a repository can have such a name, else GitHub
   * @param repository `owner/name`, GitLab full path, `workspace/slug` or `PROJ/slug`, as users type it
   * @throws DomainError a sentence for people: a name that no repository has, a sign-in that has ended, a provider that
   *   gives no answer
   */
  async find(userId: string, provider: ProviderType | null, repository: string): Promise<CloneAccess> {
    const chosen = await this.credentials.choose(userId, provider, repository);
    const { credential } = chosen;
    try {
      const adapter = this.credentials.adapterFor(chosen);
      const url = adapter.cloneUrl(credential?.host ?? null, repository);
      return {
        provider: chosen.provider,
        url,
        credential: credential
          ? await adapter.gitCredential(
              credential,
              this.calls.within(CLONE_ACCESS_SERVICE_DEADLINE_MS, userId, credential),
            )
          : null,
      };
    } catch (error) {
      throw error instanceof GitProviderError ? gitProviderProblem(chosen.provider, error) : error;
    }
  }
}
