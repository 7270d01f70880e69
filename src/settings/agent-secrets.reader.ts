import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { AppConfig } from '../config/app-config.js';
import { AgentGitTokensReader } from '../git-providers/agent-git-tokens.reader.js';
import { customSecretBinding } from './encrypted-columns.js';
import { CustomSecret } from './custom-secret.entity.js';

/** A secret of an agent's tools, in clear: for agents only, never for a log or another answer. */
export interface AgentSecret {
  value: string;
  description: string | null;
}

/** The same without its value. */
export interface AgentSecretDescription {
  name: string;
  description: string | null;
}

/**
 * What the tools of a user's agents get as environment variables: custom secrets under their names, and git tokens as
 * `GITHUB_TOKEN`, `GITLAB_TOKEN` and `BITBUCKET_TOKEN` unless the operator keeps these back
 * (`AGENT_EXPOSE_GIT_TOKENS=false`). A custom secret of such a name wins.
 */
@Injectable()
export class AgentSecretsReader {
  constructor(
    @InjectRepository(CustomSecret) private readonly secrets: Repository<CustomSecret>,
    private readonly cipher: SecretCipher,
    private readonly gitTokens: AgentGitTokensReader,
    private readonly config: AppConfig,
  ) {}

  /**
   * All of them by name. A git token that cannot be had at the moment is left out and logged.
   *
   * @throws SecretDecryptionError when a stored value is not readable with the configured keys
   */
  async forUser(userId: string): Promise<Map<string, AgentSecret>> {
    const [descriptions, tokens, custom] = await Promise.all([
      this.gitTokenDescriptions(userId),
      this.config.agent.exposeGitTokens ? this.gitTokens.list(userId) : new Map<string, string>(),
      this.secrets.find({ where: { userId }, order: { name: 'ASC' } }),
    ]);
    return new Map<string, AgentSecret>([
      ...[...tokens].map(
        ([name, value]) => [name, { value, description: descriptions.get(name) ?? null }] as const,
      ),
      ...custom.map(
        (secret) => [secret.name, { value: this.decrypt(secret), description: secret.description }] as const,
      ),
    ]);
  }

  /** Names and descriptions, by name. */
  async describe(userId: string): Promise<AgentSecretDescription[]> {
    const [tokens, custom] = await Promise.all([
      this.gitTokenDescriptions(userId),
      this.secrets.find({ select: { name: true, description: true }, where: { userId } }),
    ]);
    const all = new Map<string, string | null>([
      ...tokens,
      ...custom.map(({ name, description }) => [name, description] as const),
    ]);
    return [...all]
      .map(([name, description]) => ({ name, description }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * The value of one; null when there is none of that name.
   *
   * @throws DomainError when it is a git token that has to be asked for and is not told
   */
  async find(userId: string, name: string): Promise<string | null> {
    const custom = await this.secrets.findOneBy({ userId, name });
    if (custom) {
      return this.decrypt(custom);
    }
    return this.config.agent.exposeGitTokens ? await this.gitTokens.find(userId, name) : null;
  }

  private async gitTokenDescriptions(userId: string): Promise<Map<string, string>> {
    return this.config.agent.exposeGitTokens ? await this.gitTokens.describe(userId) : new Map();
  }

  private decrypt({ userId, name, value }: CustomSecret): string {
    return this.cipher.decrypt(value, customSecretBinding(userId, name));
  }
}
