import { Injectable } from '@nestjs/common';
import type { ClearMcpConfig } from '../../../mcp-config/mcp-config.types.js';
import { McpConfigStore } from '../../../mcp-config/mcp-config.store.js';
import { type AgentSecret, AgentSecretsReader } from '../../../settings/agent-secrets.reader.js';
import { SettingsKeysReader } from '../../../settings/settings-keys.reader.js';
import { SettingsStore } from '../../../settings/settings.store.js';
import { agentSettings, type AgentSettings } from './agent-settings.js';

/** All that a user has stored for agents, in clear. Never an answer, never a row, never a log. */
export interface AgentInputs {
  settings: AgentSettings;
  mcpConfig: ClearMcpConfig | null;
  /** By name. */
  secrets: ReadonlyMap<string, AgentSecret>;
}

/** Reads what a user has stored for agents, as it is now. */
@Injectable()
export class AgentInputsReader {
  constructor(
    private readonly settings: SettingsStore,
    private readonly keys: SettingsKeysReader,
    private readonly mcpConfigs: McpConfigStore,
    private readonly secrets: AgentSecretsReader,
  ) {}

  /**
   * @param given secrets of one conversation, which go before those of the user
   * @throws SecretDecryptionError when something stored is not readable with the configured keys
   */
  async read(userId: string, given: ReadonlyMap<string, string>): Promise<AgentInputs> {
    const [judged, own] = await Promise.all([this.readSettings(userId), this.secrets.forUser(userId)]);
    const secrets = new Map(own);
    for (const [name, value] of given) {
      secrets.set(name, { value, description: null });
    }
    return { ...judged, secrets };
  }

  /** Without secrets: nobody but the database is asked. */
  async readSettings(userId: string): Promise<Omit<AgentInputs, 'secrets'>> {
    const [row, keys, mcpConfig] = await Promise.all([
      this.settings.find(userId),
      this.keys.forUser(userId),
      this.mcpConfigs.read(userId),
    ]);
    return { settings: agentSettings(row, keys), mcpConfig };
  }
}
