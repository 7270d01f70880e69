import { readFile } from 'node:fs/promises';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { z } from 'zod';
import { isOwnServer } from '@slipway/common/model-endpoint.js';
import { namedValues } from '@slipway/common/validation/named-values.js';
import { AppConfig } from '../config/app-config.js';
import { ConfigError, parseConfigured, readConfigured } from '../config/config.error.js';
import type { ClearMcpConfig } from './mcp/mcp-secrets.js';
import { namedServers, patchNamedServers } from './mcp/named-servers.js';
import { isSameModelServer } from './model-check.js';
import { emptySettingsRow, type SettingsRow } from './settings-table.js';

const FILE = 'DEFAULT_MCP_SERVERS_FILE';

/** A model as it is called; the key is in clear. */
export interface CalledModel {
  model: string | null;
  /** Null or blank: the provider's own address. */
  baseUrl: string | null;
  apiKey: string | null;
}

/** What the operator gives to users who have none of their own: never stored with theirs, and never shown but for its name. */
@Injectable()
export class OperatorDefaults implements OnModuleInit {
  private mcpConfig: ClearMcpConfig | null = null;

  constructor(private readonly config: AppConfig) {}

  async onModuleInit(): Promise<void> {
    const { defaultMcpServersFile: file } = this.config.agent;
    if (file !== null) {
      this.mcpConfig = await readMcpServers(file);
    }
  }

  /** US dollars of a conversation; null: no limit. */
  get budget(): number | null {
    return this.config.agent.defaultMaxBudgetPerTask;
  }

  /**
   * Completes what a user has, and says whose key that is; null where a user has a server of their own. The operator's key
   * goes nowhere but to the operator's own address, or without one to the provider of the operator's model: a user who
   * names an address or another provider gets none of it.
   */
  complete(own: CalledModel): (CalledModel & { source: 'user' | 'operator' }) | null {
    const operator = this.model();
    const isElsewhere =
      (isBlank(operator.model) && operator.baseUrl === null) ||
      !isBlank(own.baseUrl) ||
      (!isBlank(own.model) && (!isBlank(own.apiKey) || !isServedBy(operator, own.model ?? '')));
    return isElsewhere
      ? null
      : {
          model: isBlank(own.model) ? operator.model : own.model,
          baseUrl: operator.baseUrl,
          apiKey: isBlank(own.apiKey) ? operator.apiKey : own.apiKey,
          source: isBlank(own.apiKey) ? 'operator' : 'user',
        };
  }

  /** A user's tool servers, and those of the operator whose name the user has not taken. */
  completeServers(own: ClearMcpConfig | null): ClearMcpConfig | null {
    const given = this.mcpConfig;
    if (own === null || given === null) {
      return own ?? given;
    }
    const taken = namedServers(own);
    const isFree = ({ name }: { name?: unknown }): boolean => !taken.has(String(name));
    return {
      sseServers: [...own.sseServers, ...given.sseServers.filter(({ details = {} }) => isFree(details))],
      stdioServers: [...own.stdioServers, ...given.stdioServers.filter(isFree)],
      shttpServers: [
        ...own.shttpServers,
        ...given.shttpServers.filter(({ details = {} }) => isFree(details)),
      ],
    };
  }

  /**
   * The row as responses show it. The address stays the user's own: a form that sends it back would make it one, to
   * which the operator's key does not go.
   */
  shown(row: SettingsRow | null): SettingsRow | null {
    const { llm_model: model, llm_base_url: baseUrl, llm_api_key_set: hasKey } = row ?? emptySettingsRow();
    // The value of a stored key does not matter here.
    const completed = this.complete({ model, baseUrl, apiKey: hasKey ? 'set' : null });
    if (completed === null) {
      return row && { ...row, llm_source: isBlank(model) && !hasKey ? null : 'user' };
    }
    return {
      ...(row ?? emptySettingsRow()),
      llm_model: completed.model,
      llm_api_key_set: completed.apiKey !== null,
      llm_source: completed.source,
    };
  }

  private model(): CalledModel {
    const { defaultLlmModel: model, defaultLlmBaseUrl: baseUrl, defaultLlmApiKey } = this.config.agent;
    // Without an address such a model is called inside the sandbox, where a user's program may listen.
    const isInside = baseUrl === null && isOwnServer(model ?? '');
    return { model, baseUrl, apiKey: isInside ? null : defaultLlmApiKey };
  }
}

/** Whether the operator's key may go where a model is called that has neither an address nor a key. */
function isServedBy({ model, baseUrl }: CalledModel, name: string): boolean {
  return baseUrl === null
    ? isSameModelServer({ model, baseUrl }, { model: name, baseUrl })
    : !isOwnServer(name);
}

function isBlank(text: string | null): boolean {
  return text === null || text.trim() === '';
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
