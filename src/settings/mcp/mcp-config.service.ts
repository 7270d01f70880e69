import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { type InputProblem, requireNone } from '../../common/errors/domain-error.js';
import { MAX_CONFIG_LENGTH, type McpConfigDto } from './mcp-config.dto.js';
import { McpConfigRepository } from './mcp-config.repository.js';
import { type ClearMcpConfig, resolveMasks } from './mcp-secrets.js';
import { namedServers, patchNamedServers } from './named-servers.js';

/** Stores users' MCP configurations, for the features whose requests bring one. */
@Injectable()
export class McpConfigService {
  constructor(
    private readonly configs: McpConfigRepository,
    private readonly addresses: OutboundAddresses,
  ) {}

  /**
   * Replaces a user's configuration within the caller's transaction, which has locked the user; null removes it. A mask
   * stands for what is stored at that moment.
   * @param loc where the configuration stands in the request, such as `['body', 'mcp_config']`
   * @throws InvalidInputError for addresses that are not allowed and masks with nothing stored behind them
   */
  async store(
    manager: EntityManager,
    userId: string,
    dto: McpConfigDto | null,
    loc: readonly string[],
  ): Promise<void> {
    if (dto === null) {
      await this.configs.removeOf(manager, userId);
      return;
    }
    const { mcpServers, ...lists } = dto;
    if (mcpServers !== undefined) {
      const given = Object.entries(lists).filter(([, list]) => list !== undefined);
      requireNone(given.map(([name]) => besideNamed([...loc, name])));
      await this.patch(manager, userId, { mcpServers }, loc);
      return;
    }
    const before = await this.configs.readLocked(manager, userId);
    const { config, problems } = resolveMasks(dto, before, loc);
    const all = [...this.addressProblems(dto, loc), ...problems];
    requireNone(all);
    const names = [...namedServers(config).keys()];
    await this.configs.replace(manager, userId, { before, config, audited: { servers: names } });
  }

  /**
   * Changes a user's tool servers within the caller's transaction, as `patchNamedServers` reads the patch. Throws like
   * {@link store}.
   */
  async patch(manager: EntityManager, userId: string, patch: unknown, loc: readonly string[]): Promise<void> {
    const before = await this.configs.readLocked(manager, userId);
    const { config, problems } = patchNamedServers(before, patch, loc);
    const all = [...problems, ...this.refusedAddresses(config, loc), ...sizeProblems(config, loc)];
    requireNone(all);
    const audited = changedServers(config, before);
    await this.configs.replace(manager, userId, { before, config, audited });
  }

  private refusedAddresses(config: ClearMcpConfig | null, loc: readonly string[]): InputProblem[] {
    return [...(config?.sseServers ?? []), ...(config?.shttpServers ?? [])].flatMap(({ url, details }) => {
      const msg = this.addresses.problem(url);
      const name = details?.['name'];
      const at = typeof name === 'string' ? [name, 'url'] : ['url'];
      return msg === null ? [] : [{ loc: [...loc, ...at], msg, type: 'value_error' }];
    });
  }

  /** Addresses of a configuration that the operator does not allow; {@link store} refuses them too. */
  addressProblems(dto: McpConfigDto, loc: readonly string[]): InputProblem[] {
    return (['sse_servers', 'shttp_servers'] as const).flatMap((list) =>
      (dto[list] ?? []).flatMap(({ url }, index) => {
        const msg = this.addresses.problem(url);
        return msg === null ? [] : [{ loc: [...loc, list, String(index), 'url'], msg, type: 'value_error' }];
      }),
    );
  }
}

function besideNamed(loc: string[]): InputProblem {
  return { loc, msg: 'Expected either mcpServers or the three lists.', type: 'value_error' };
}

/** Patches add servers, one request after the other. */
function sizeProblems(config: ClearMcpConfig | null, loc: readonly string[]): InputProblem[] {
  return JSON.stringify(config).length > MAX_CONFIG_LENGTH
    ? [
        {
          loc: [...loc],
          msg: `Expected at most ${MAX_CONFIG_LENGTH} characters of JSON in all.`,
          type: 'value_error',
        },
      ]
    : [];
}

/** Names of the servers that are new, different and gone. */
function changedServers(
  config: ClearMcpConfig | null,
  before: ClearMcpConfig | null,
): Record<'added' | 'changed' | 'removed', string[]> {
  const [now, old] = [namedServers(config), namedServers(before)];
  const names = [...now.keys()];
  return {
    added: names.filter((name) => !old.has(name)),
    changed: names.filter((name) => old.has(name) && !isDeepStrictEqual(now.get(name), old.get(name))),
    removed: [...old.keys()].filter((name) => !now.has(name)),
  };
}
