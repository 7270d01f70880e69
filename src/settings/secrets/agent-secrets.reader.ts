import { Injectable } from '@nestjs/common';
import { AppConfig } from '../../config/app-config.js';
import { AgentGitTokensReader } from '../../git-providers/tokens/agent-git-tokens.reader.js';
import { TOKEN_VARIABLES } from '../../git-providers/git-servers.js';
import type { StoredCredential } from '../../git-providers/tokens/provider-token.repository.js';
import { CustomSecretRepository } from './custom-secret.repository.js';

/** A secret of an agent's tools, in clear: for agents only, never for a log or another response. */
export interface AgentSecret {
  value: string;
  description: string | null;
}

export interface AgentSecretDescription {
  name: string;
  description: string | null;
}

/** What the SDK asks for when it clones: `github_token`. */
const SDK_TOKEN_NAMES: ReadonlySet<string> = new Set([...TOKEN_VARIABLES].map((name) => name.toLowerCase()));

/**
 * What the tools of a user's agents get as environment variables: custom secrets under their names, and git tokens as
 * `GITHUB_TOKEN`, `GITLAB_TOKEN` and `BITBUCKET_TOKEN` unless the operator withholds them
 * (`AGENT_EXPOSE_GIT_TOKENS=false`). A custom secret of such a name wins.
 */
@Injectable()
export class AgentSecretsReader {
  constructor(
    private readonly secrets: CustomSecretRepository,
    private readonly gitTokens: AgentGitTokensReader,
    private readonly config: AppConfig,
  ) {}

  /**
   * All of them by name. A git token that is not available at the moment is left out and logged.
   * @param credentials all of the user's git credentials, from `ProviderTokenRepository.list`
   * @throws SecretDecryptionError when a stored value is not readable with the configured keys
   */
  async forUser(userId: string, credentials: readonly StoredCredential[]): Promise<Map<string, AgentSecret>> {
    const [tokens, custom] = await Promise.all([
      this.config.agent.exposeGitTokens
        ? this.gitTokens.list(userId, credentials)
        : new Map<string, AgentSecret>(),
      this.secrets.read(userId),
    ]);
    return new Map<string, AgentSecret>([
      ...tokens,
      ...custom.map(({ name, value, description }) => [name, { value, description }] as const),
    ]);
  }

  /** Names and descriptions, by name. @param names those that may be seen; null: all */
  async describe(userId: string, names: readonly string[] | null = null): Promise<AgentSecretDescription[]> {
    const [tokens, custom] = await Promise.all([
      this.gitTokenDescriptions(userId),
      this.secrets.describe(userId),
    ]);
    const all = new Map<string, string | null>([
      ...tokens,
      ...custom.map(({ name, description }) => [name, description] as const),
    ]);
    return [...all]
      .filter(([name]) => names === null || names.includes(name))
      .map(([name, description]) => ({ name, description }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * The value of one; null when there is none of that name. Git tokens have the names of the SDK too, in lower case.
   * @param names those that may be seen; null: all
   * @throws DomainError when it is a git token that its provider does not hand out at the moment
   */
  async find(userId: string, name: string, names: readonly string[] | null = null): Promise<string | null> {
    const isVisible = names === null || names.includes(name);
    const custom = isVisible ? await this.secrets.readValue(userId, name) : null;
    if (custom !== null) {
      return custom;
    }
    if (SDK_TOKEN_NAMES.has(name)) {
      return this.find(userId, name.toUpperCase(), names);
    }
    return isVisible && this.config.agent.exposeGitTokens ? await this.gitTokens.find(userId, name) : null;
  }

  private async gitTokenDescriptions(userId: string): Promise<Map<string, string>> {
    return this.config.agent.exposeGitTokens ? await this.gitTokens.describe(userId) : new Map();
  }
}
