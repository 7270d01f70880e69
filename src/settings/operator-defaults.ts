import { readFile } from 'node:fs/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { z } from 'zod';
import { isOwnServer } from '@slipway/common/model-endpoint.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { AppConfig } from '../config/app-config.js';
import { ConfigError, parseConfigured, readConfigured } from '../config/config.error.js';
import type { ClearMcpConfig } from './mcp/mcp-secrets.js';
import { patchNamedServers } from './mcp/named-servers.js';
import { isUnset, llmOver, type SettingsLayer } from './settings-layers.js';
import { emptySettingsRow, type SettingsRow } from './settings-table.js';

const FILE = 'DEFAULT_MCP_SERVERS_FILE';

/** What the operator gives to users who have none of their own: never stored with theirs, and never shown but for its name. */
@Injectable()
export class OperatorDefaults implements OnModuleInit {
  private toolServers: ClearMcpConfig | null = null;

  constructor(private readonly config: AppConfig) {}

  async onModuleInit(): Promise<void> {
    const { defaultMcpServersFile: file } = this.config.agent;
    if (file !== null) {
      this.toolServers = await readMcpServers(file);
    }
  }

  /** What lies below the settings of all users. */
  get layer(): SettingsLayer {
    const { defaultLlmModel: model, defaultLlmBaseUrl: base_url, defaultLlmApiKey } = this.config.agent;
    // Without an address such a model is called inside the sandbox, where a user's program may listen.
    const isInside = base_url === null && isOwnServer(model ?? '');
    const { defaultMaxBudgetPerTask: budget } = this.config.agent;
    return {
      owner: 'operator',
      members: { ...(budget !== null && { max_budget_per_task: budget }) },
      llm: { model, base_url, api_key: isInside ? null : defaultLlmApiKey },
      toolServers: this.toolServers,
    };
  }

  /**
   * The row as responses show it. The address stays the user's own: a form that sends it back would make it one, to
   * which the operator's key does not go.
   */
  shown(row: SettingsRow | null): SettingsRow | null {
    const { llm_model: model, llm_base_url: base_url, llm_api_key_set: hasKey } = row ?? emptySettingsRow();
    // The value of a stored key does not matter here.
    const completed = llmOver(
      { owner: 'user', llm: { model, base_url, api_key: hasKey ? 'set' : null } },
      this.layer,
    );
    if (completed === null) {
      return row && { ...row, llm_source: isUnset(model) && !hasKey ? null : 'user' };
    }
    return {
      ...(row ?? emptySettingsRow()),
      llm_model: completed.llm.model,
      llm_api_key_set: completed.llm.api_key !== null,
      llm_source: completed.owner,
    };
  }
}

/** @throws ConfigError with the first mistake */
async function readMcpServers(file: string): Promise<ClearMcpConfig | null> {
  const servers = await readConfigured(FILE, file, async () =>
    parseConfigured(await readFile(file, 'utf8'), namedValues(z.string().min(1), z.unknown())),
  );
  const { config, problems } = patchNamedServers(null, servers, []);
  const [problem] = problems;
  if (problem !== undefined) {
    throw new ConfigError(`${FILE}: ${file}: ${problem.loc.join('.')}: ${problem.msg}`);
  }
  return config;
}
