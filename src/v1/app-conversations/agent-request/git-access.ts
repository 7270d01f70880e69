import { Injectable, Logger } from '@nestjs/common';
import type { GitAccess, GitCredential, GitIdentity } from '../../../agent-protocol/git.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { AppConfig } from '../../../config/app-config.js';
import type { ProviderType } from '../../../git-providers/git-provider.js';
import { CloneAccessService } from '../../../git-providers/repository-access.service.js';
import { ProviderTokenRepository } from '../../../git-providers/tokens/provider-token.repository.js';
import type { AgentSettings } from './agent-settings.js';

/** Any name that a repository can have everywhere: only the server is asked for. */
const ANY_REPOSITORY = 'octo/app';

/** What an agent may do on the git servers of its user. */
@Injectable()
export class GitAccessReader {
  private readonly logger = new Logger(GitAccessReader.name);

  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly access: CloneAccessService,
    private readonly config: AppConfig,
  ) {}

  /** A credential for each server that the user has a token for; one that cannot be had is logged and left out. */
  async find(
    userId: string,
    settings: Pick<AgentSettings, 'git_user_name' | 'git_user_email'>,
  ): Promise<GitAccess> {
    const stored = await this.tokens.list(userId);
    const found = await Promise.all(stored.map(({ provider }) => this.credential(userId, provider)));
    const byOrigin = new Map<string, GitCredential>();
    for (const credential of found) {
      // The user's own token comes before the one of enterprise_sso for the same server.
      if (credential !== null && !byOrigin.has(credential.origin)) {
        byOrigin.set(credential.origin, credential);
      }
    }
    return {
      credentials: [...byOrigin.values()],
      expose: this.config.agent.exposeGitTokens,
      identity: gitIdentity(settings),
    };
  }

  private async credential(userId: string, provider: ProviderType): Promise<GitCredential | null> {
    try {
      const { url, credential } = await this.access.find(userId, provider, ANY_REPOSITORY);
      return (
        credential && {
          origin: new URL(url).origin,
          username: credential.username,
          password: credential.password,
        }
      );
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      this.logger.warn('an agent goes without the credentials of a git server', {
        provider,
        code: error.code,
      });
      return null;
    }
  }
}

/** Without a name git makes no commit, and an agent is expected to make some. The address is nobody's (RFC 2606). */
const DEFAULT: GitIdentity = { name: 'Slipway', email: 'agent@slipway.invalid' };

/** Who commits in a sandbox: as the settings say, filled up where they say a half. */
export function gitIdentity({
  git_user_name: name,
  git_user_email: email,
}: {
  git_user_name: string | null;
  git_user_email: string | null;
}): GitIdentity {
  const given = { name: oneLine(name), email: oneLine(email) };
  return {
    name: given.name || given.email.split('@', 1)[0] || DEFAULT.name,
    email: given.email || DEFAULT.email,
  };
}

/** git keeps its configuration in lines. */
function oneLine(text: string | null): string {
  return (text ?? '')
    .replaceAll(/[\p{Cc}<>]+/gu, ' ')
    .trim()
    .slice(0, 200);
}
