import { Injectable } from '@nestjs/common';
import {
  ProviderTokenRepository,
  type StoredCredential,
} from '../../../git-providers/tokens/provider-token.repository.js';
import { McpConfigRepository } from '../../../mcp-config/mcp-config.repository.js';
import type { ClearMcpConfig } from '../../../mcp-config/mcp-config.types.js';
import { type AgentSecret, AgentSecretsReader } from '../../../settings/agent-secrets.reader.js';
import { SettingsRepository } from '../../../settings/settings.repository.js';
import { type AgentSettings, agentSettings } from './agent-settings.js';

/** What decides whether a conversation can begin. */
interface AgentConfiguration {
  settings: AgentSettings;
  mcpConfig: ClearMcpConfig | null;
}

/** Everything a user has stored for agents, in clear: never for a response, a row or a log. */
interface AgentInputs extends AgentConfiguration {
  /** By name. */
  secrets: ReadonlyMap<string, AgentSecret>;
  /** For git servers. */
  credentials: readonly StoredCredential[];
}

/** Reads what a user has stored for agents as it is now, each table once. */
@Injectable()
export class AgentInputsReader {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly tokens: ProviderTokenRepository,
    private readonly secrets: AgentSecretsReader,
  ) {}

  /**
   * @param own secrets of one conversation, which take precedence over those of the user
   * @throws SecretDecryptionError when something stored is not readable with the configured keys
   */
  async read(userId: string, own: ReadonlyMap<string, string>): Promise<AgentInputs> {
    const [configuration, credentials] = await Promise.all([
      this.readConfiguration(userId),
      this.tokens.list(userId),
    ]);
    const secrets = await this.secrets.forUser(userId, credentials);
    for (const [name, value] of own) {
      secrets.set(name, { value, description: null });
    }
    return { ...configuration, secrets, credentials };
  }

  /** Without secrets and credentials: only the database is asked. Throws like `read`. */
  async readConfiguration(userId: string): Promise<AgentConfiguration> {
    const [{ settings, keys }, mcpConfig] = await Promise.all([
      this.settings.loadWithKeys(userId),
      this.mcpConfigs.read(userId),
    ]);
    return { settings: agentSettings(settings, keys), mcpConfig };
  }
}
