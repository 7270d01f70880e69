import { Injectable, Logger } from '@nestjs/common';
import { DEFAULT_IDENTITY } from '@slipway/agent-protocol/default-identity.js';
import type { GitAccess, GitIdentity, GitServerCredential } from '@slipway/agent-protocol/git.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { AppConfig } from '../../../config/app-config.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { RepositoryAccessService } from '../../../git-providers/repository-access.service.js';
import type { StoredCredential } from '../../../git-providers/tokens/provider-token.repository.js';
import type { AgentSettings } from '@slipway/settings/agent-settings.js';
import { type ConversationLimits, gitMode, hasTokens, visibleSecrets } from '../start-task.entity.js';

/** The repository of an agent's work (null: none) and what the agent may do with it. */
interface RepositoryUse {
  userId: string;
  repository: string | null;
  provider: ProviderType | null;
  limits: ConversationLimits;
}

type GitSettings = Pick<AgentSettings, 'git_user_name' | 'git_user_email'>;

/** From the settings, completed with defaults; null: they have none, and the repository's own counts. */
export function gitIdentity({ git_user_name: name, git_user_email: email }: GitSettings): GitIdentity | null {
  const given = { name: oneLine(name), email: oneLine(email) };
  if (given.name === '' && given.email === '') {
    return null;
  }
  return {
    name: given.name || given.email.split('@', 1)[0] || DEFAULT_IDENTITY.name,
    email: given.email || DEFAULT_IDENTITY.email,
  };
}

/** git's configuration is line-based. */
function oneLine(text: string | null): string {
  return textHead((text ?? '').replaceAll(/[\p{Cc}<>]+/gu, ' ').trim(), 200);
}

/** Reads what git in a sandbox gets: credentials within the limits of the conversation, and whose commits it makes. */
@Injectable()
export class GitAccessReader {
  private readonly logger = new Logger(GitAccessReader.name);

  constructor(
    private readonly access: RepositoryAccessService,
    private readonly config: AppConfig,
  ) {}

  /**
   * A credential for each server that the user has a token for (of an installation: one for the work's repository), in the order of `PROVIDER_TYPES`, unless the conversation's
   * limits keep the token from it; then at most one for its own repository. Unavailable ones are logged and left out.
   */
  async read(
    use: RepositoryUse,
    settings: GitSettings,
    stored: readonly StoredCredential[],
  ): Promise<GitAccess> {
    const { userId, limits } = use;
    const isVisible = visibleSecrets([limits]);
    const found = await Promise.all(
      (gitMode(limits) === 'write' ? stored : []).map((credential) =>
        this.orNull(credential.provider, this.access.serverCredential(userId, credential)),
      ),
    );
    const byPlace = new Map<string, GitServerCredential>();
    const named = found.flatMap((each) => (each && isVisible(each.tokenVariable, true) ? [each.access] : []));
    const all: GitServerCredential[] = [...named, ...(await this.ownRepositories(use, stored))];
    for (const credential of all) {
      // The user's own token comes before the one of enterprise_sso for the same server.
      const place = credential.repository ?? credential.origin;
      if (!byPlace.has(credential.origin) && !byPlace.has(place)) {
        byPlace.set(place, credential);
      }
    }
    return {
      credentials: [...byPlace.values()],
      expose: this.config.agent.exposeGitTokens && named.length > 0,
      mode: gitMode(limits),
      identity: gitIdentity(settings),
    };
  }

  /** Returns credentials for its repository and the fork that it works in, when the limits withhold the token itself. */
  private async ownRepositories(
    { userId, repository, provider, limits }: RepositoryUse,
    stored: readonly StoredCredential[],
  ): Promise<GitServerCredential[]> {
    // The operator keeps all from an ACP agent that gets none.
    if (repository === null || gitMode(limits) === 'none' || hasTokens(limits) || stored.length === 0) {
      return [];
    }
    const { head = null, fork = null } = limits.work_place ?? {};
    const names = [repository, head?.repository ?? null, fork].filter((name) => name !== null);
    const found = await Promise.all(
      names.map((name) => this.orNull(provider, this.access.cloneAccess(userId, provider, name))),
    );
    return found.flatMap((each) =>
      each?.credential
        ? [{ ...each.credential, origin: new URL(each.url).origin, repository: each.url }]
        : [],
    );
  }

  private async orNull<T>(provider: ProviderType | null, reading: Promise<T>): Promise<T | null> {
    try {
      return await reading;
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      this.logger.warn('failed to get the credentials of a git server for an agent', {
        provider,
        code: error.code,
      });
      return null;
    }
  }
}
