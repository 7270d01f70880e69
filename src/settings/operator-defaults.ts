import { readFile } from 'node:fs/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { AppConfig } from '../config/app-config.js';
import { ConfigError, parseConfigured, readConfigured } from '@slipway/common/errors/config.error.js';
import { patchNamedServers } from '@slipway/tool-servers/named-servers.js';
import type { ToolServer } from '@slipway/tool-servers/tool-servers.js';
import { type SettingsLayer, sharedModel } from '@slipway/settings/settings-layers.js';

const FILE = 'DEFAULT_MCP_SERVERS_FILE';

/** What the operator gives to users who have none of their own: never stored with theirs, and never shown but for its name. */
@Injectable()
export class OperatorDefaults implements OnModuleInit {
  private toolServers: ToolServer[] | null = null;

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
    const { defaultMaxBudgetPerTask: budget } = this.config.agent;
    return {
      ...sharedModel({ owner: 'operator', llm: { model, base_url, api_key: defaultLlmApiKey } }),
      members: { ...(budget !== null && { max_budget_per_task: budget }) },
      toolServers: this.toolServers,
    };
  }
}

/** @throws ConfigError with the first mistake */
async function readMcpServers(file: string): Promise<ToolServer[] | null> {
  const given = await readConfigured(FILE, file, async () =>
    parseConfigured(await readFile(file, 'utf8'), namedValues(z.string().min(1), z.unknown())),
  );
  const { servers, problems } = patchNamedServers(null, given, []);
  const [problem] = problems;
  if (problem !== undefined) {
    throw new ConfigError(`${FILE}: ${file}: ${problem.loc.join('.')}: ${problem.msg}`);
  }
  return servers;
}
