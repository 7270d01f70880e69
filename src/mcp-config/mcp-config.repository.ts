import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import { lockUser } from '../auth/lock-user.js';
import { SecretCipher } from '../common/crypto/secret-cipher.js';
import { type InputProblem, InvalidInputError } from '../common/errors/domain-error.js';
import { OutboundAddresses } from '../common/http/host-allowlist.js';
import type { McpConfigDto } from './mcp-config.dto.js';
import { McpConfig } from './mcp-config.entity.js';
import type { ClearMcpConfig, ClearRemoteMcpServer, StoredMcpConfig } from './mcp-config.types.js';
import {
  maskedConfig,
  mcpConfigBinding,
  type McpSecrets,
  resolveMasks,
  secretsOf,
  unmaskedConfig,
} from './mcp-secrets.js';

/**
 * The statement that replaces a user's tool servers.
 *
 * @param owner SQL of the user's id; `config` and `secrets` likewise SQL, parameters mostly
 */
export function mcpConfigUpsert(owner: string, config: string, secrets: string): string {
  return `
  INSERT INTO mcp_configs (user_id, config, secrets)
  VALUES (${owner}, ${config}, ${secrets})
  ON CONFLICT (user_id) DO UPDATE
  SET config = excluded.config, secrets = excluded.secrets, updated_at = now()`;
}

const UPSERT = mcpConfigUpsert('$1', '$2', '$3');

/** A configuration in the form of its two columns. */
export interface McpConfigColumns {
  /** JSON text, secrets masked. */
  config: string;
  /** Encrypted; null when there are none. */
  secrets: string | null;
}

/** Users' MCP configurations. Writers of one user take turns, so a mask always stands for what is stored right then. */
@Injectable()
export class McpConfigRepository {
  constructor(
    @InjectRepository(McpConfig) private readonly configs: Repository<McpConfig>,
    private readonly addresses: OutboundAddresses,
    private readonly cipher: SecretCipher,
  ) {}

  /** Addresses of a configuration that the operator does not allow; `store` refuses them too. */
  problems(dto: McpConfigDto, loc: readonly string[]): InputProblem[] {
    return mcpAddressProblems(dto, this.addresses, loc);
  }

  /**
   * Replaces a user's configuration within the caller's transaction; null removes it.
   *
   * @param loc where the configuration stands in the request, such as `['body', 'mcp_config']`
   * @throws InvalidInputError for addresses that are not allowed and masks with nothing stored behind them
   * @throws DomainError unauthorized when the user is gone by now
   */
  async store(
    manager: EntityManager,
    userId: string,
    dto: McpConfigDto | null,
    loc: readonly string[],
  ): Promise<void> {
    await lockUser(manager, userId);
    if (dto === null) {
      await manager.delete(McpConfig, { userId });
      return;
    }
    const stored = await manager.findOneBy(McpConfig, { userId });
    const { config, problems } = resolveMasks(dto, stored && this.inClear(stored), loc);
    const all = [...this.problems(dto, loc), ...problems];
    if (all.length > 0) {
      throw new InvalidInputError(all);
    }
    const columns = this.columns(userId, config);
    await manager.query(UPSERT, [userId, columns.config, columns.secrets]);
  }

  /**
   * A configuration ready to be written without looking at what is stored; null when masks in it stand for something
   * stored. Does not check addresses, see {@link problems}.
   */
  columnsOf(userId: string, dto: McpConfigDto): McpConfigColumns | null {
    const { config, problems } = resolveMasks(dto, null, []);
    return problems.length > 0 ? null : this.columns(userId, config);
  }

  /** The configuration with its secrets, for agents; null when there is none. */
  async read(userId: string): Promise<ClearMcpConfig | null> {
    const stored = await this.configs.findOneBy({ userId });
    return stored && this.inClear(stored);
  }

  private columns(userId: string, config: ClearMcpConfig): McpConfigColumns {
    const secrets = secretsOf(config);
    return {
      config: JSON.stringify(maskedConfig(config)),
      secrets: secrets && this.cipher.encrypt(JSON.stringify(secrets), mcpConfigBinding(userId)),
    };
  }

  private inClear({ userId, config, secrets }: McpConfig): ClearMcpConfig {
    const known: McpSecrets | null =
      secrets === null ? null : JSON.parse(this.cipher.decrypt(secrets, mcpConfigBinding(userId)));
    return unmaskedConfig(config, known);
  }
}

/** A configuration in the form of the wire, secrets in clear: for agents that may have them. */
export function exposedConfig(config: ClearMcpConfig): StoredMcpConfig {
  return {
    sse_servers: config.sseServers.map(exposedServer),
    stdio_servers: config.stdioServers.map(({ name, command, args, env }) => ({
      name,
      command,
      args,
      env: Object.fromEntries(env),
    })),
    shttp_servers: config.shttpServers.map(exposedServer),
  };
}

function exposedServer({ url, apiKey }: ClearRemoteMcpServer): { url: string; api_key: string | null } {
  return { url, api_key: apiKey };
}

/**
 * Addresses of a configuration that the operator does not allow.
 *
 * @param loc where the configuration stands in the request, such as `['body', 'mcp_config']`
 */
function mcpAddressProblems(
  dto: McpConfigDto,
  addresses: OutboundAddresses,
  loc: readonly string[],
): InputProblem[] {
  return (['sse_servers', 'shttp_servers'] as const).flatMap((list) =>
    (dto[list] ?? []).flatMap(({ url }, index) => {
      const msg = addresses.problem(url);
      return msg === null ? [] : [{ loc: [...loc, list, String(index), 'url'], msg, type: 'value_error' }];
    }),
  );
}
