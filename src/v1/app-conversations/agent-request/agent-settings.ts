import { Injectable } from '@nestjs/common';
import { McpConfigRepository } from '../../../mcp-config/mcp-config.repository.js';
import type { ClearMcpConfig } from '../../../mcp-config/mcp-config.types.js';
import { type AgentSecret, AgentSecretsReader } from '../../../settings/agent-secrets.reader.js';
import type { SettingsKeys, SettingsRow } from '../../../settings/settings-table.js';
import { SettingsRepository } from '../../../settings/settings.repository.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-spec.js';

/** All that a user has stored for agents, in clear. Never an answer, never a row, never a log. */
interface AgentInputs {
  settings: AgentSettings;
  mcpConfig: ClearMcpConfig | null;
  /** By name. */
  secrets: ReadonlyMap<string, AgentSecret>;
}

/** Reads what a user has stored for agents, as it is now. */
@Injectable()
export class AgentInputsReader {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigRepository,
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
    const [{ settings, keys }, mcpConfig] = await Promise.all([
      this.settings.loadWithKeys(userId),
      this.mcpConfigs.read(userId),
    ]);
    return { settings: agentSettings(settings, keys), mcpConfig };
  }
}

/**
 * Which agent server is inside a sandbox: ours, which takes members and has routes that the published schema lacks, or
 * one that is told no more than the schema knows.
 */
export type AgentDialect = 'slipway' | 'stock';

/** @param spec null when it is not configured any more */
export function agentDialect(spec: SandboxSpec | null): AgentDialect {
  return spec?.program.kind === 'native' ? 'slipway' : 'stock';
}

/** The settings that say how an agent works, with their keys in clear. */
export type AgentSettings = Pick<
  SettingsRow,
  | 'llm_model'
  | 'llm_base_url'
  | 'agent'
  | 'max_iterations'
  | 'max_budget_per_task'
  | 'confirmation_mode'
  | 'security_analyzer'
  | 'enable_default_condenser'
  | 'language'
  | 'git_user_name'
  | 'git_user_email'
> &
  Pick<SettingsKeys, 'llm_api_key' | 'search_api_key'>;

/** Picks them from what is stored; everything is null for a user who stored nothing. */
export function agentSettings(
  row: Omit<AgentSettings, keyof SettingsKeys> | null,
  keys: SettingsKeys,
): AgentSettings {
  return {
    llm_model: row?.llm_model ?? null,
    llm_base_url: row?.llm_base_url ?? null,
    agent: row?.agent ?? null,
    max_iterations: row?.max_iterations ?? null,
    max_budget_per_task: row?.max_budget_per_task ?? null,
    confirmation_mode: row?.confirmation_mode ?? null,
    security_analyzer: row?.security_analyzer ?? null,
    enable_default_condenser: row?.enable_default_condenser ?? null,
    language: row?.language ?? null,
    git_user_name: row?.git_user_name ?? null,
    git_user_email: row?.git_user_email ?? null,
    llm_api_key: keys.llm_api_key,
    search_api_key: keys.search_api_key,
  };
}

const DEFAULT_MAX_ITERATIONS = 500;

/** How far an agent may go, as agent servers are told it. */
interface AgentLimits {
  /** Steps after a message. */
  max_iterations: number;
  /** USD per conversation; null: no limit. */
  max_budget: number | null;
}

/** Limits for a conversation that begins, or goes on, with these settings. */
export function agentLimits({
  max_iterations: iterations,
  max_budget_per_task: budget,
}: Pick<AgentSettings, 'max_iterations' | 'max_budget_per_task'>): AgentLimits {
  return { max_iterations: iterations ?? DEFAULT_MAX_ITERATIONS, max_budget: budget };
}
