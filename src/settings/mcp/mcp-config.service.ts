import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { type InputProblem, requireNone } from '@slipway/api/errors/problem-error.js';
import { MAX_CONFIG_LENGTH, type McpConfigDto } from '@slipway/tool-servers/mcp-config.dto.js';
import { McpConfigRepository } from './mcp-config.repository.js';
import { resolveMasks } from '@slipway/tool-servers/listed-servers.js';
import { namedServers, patchNamedServers } from '@slipway/tool-servers/named-servers.js';
import { serialized } from '@slipway/tool-servers/stored-servers.js';
import { isRemote, type ToolServer } from '@slipway/tool-servers/tool-servers.js';

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
    const { servers, problems } = resolveMasks(dto, before, loc);
    const all = [...this.addressProblems(dto, loc), ...problems];
    requireNone(all);
    const names = [...namedServers(servers).keys()];
    await this.configs.replace(manager, userId, { before, servers, audited: { servers: names } });
  }

  /**
   * Changes a user's tool servers within the caller's transaction, as `patchNamedServers` reads the patch. Throws like
   * {@link store}.
   */
  async patch(manager: EntityManager, userId: string, patch: unknown, loc: readonly string[]): Promise<void> {
    const before = await this.configs.readLocked(manager, userId);
    const { servers, problems } = patchNamedServers(before, patch, loc);
    const all = [
      ...problems,
      ...this.refusedAddresses(servers ?? [], loc),
      ...sizeProblems(servers ?? [], loc),
    ];
    requireNone(all);
    const audited = changedServers(servers, before);
    await this.configs.replace(manager, userId, { before, servers, audited });
  }

  private refusedAddresses(servers: readonly ToolServer[], loc: readonly string[]): InputProblem[] {
    return servers.filter(isRemote).flatMap(({ name, url }) => {
      const msg = this.addresses.problem(url);
      const at = name === null ? ['url'] : [name, 'url'];
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
function sizeProblems(servers: readonly ToolServer[], loc: readonly string[]): InputProblem[] {
  return serialized(servers).length > MAX_CONFIG_LENGTH
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
  after: readonly ToolServer[] | null,
  before: readonly ToolServer[] | null,
): Record<'added' | 'changed' | 'removed', string[]> {
  const [now, old] = [namedServers(after), namedServers(before)];
  const names = [...now.keys()];
  return {
    added: names.filter((name) => !old.has(name)),
    changed: names.filter((name) => old.has(name) && !isDeepStrictEqual(now.get(name), old.get(name))),
    removed: [...old.keys()].filter((name) => !now.has(name)),
  };
}
