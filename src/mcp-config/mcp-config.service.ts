import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { lockUser } from '../auth/user.repository.js';
import { type InputProblem, InvalidInputError } from '../common/errors/domain-error.js';
import type { McpConfigDto } from './mcp-config.dto.js';
import { type McpConfigColumns, McpConfigRepository } from './mcp-config.repository.js';
import type { ClearMcpConfig } from './mcp-config.types.js';
import { detailsOf, resolveMasks } from './mcp-secrets.js';
import { patchNamedServers } from './named-servers.js';

/** As much as a body may have, which is what the whole configuration is sent with. */
const MAX_LENGTH = 1_048_576;

/** Stores users' MCP configurations, for the features whose requests bring one. */
@Injectable()
export class McpConfigService {
  constructor(
    private readonly configs: McpConfigRepository,
    private readonly addresses: OutboundAddresses,
  ) {}

  /**
   * Replaces a user's configuration within the caller's transaction; null removes it. Writers of one user take turns,
   * so a mask always stands for what is stored at that moment.
   *
   * @param loc where the configuration stands in the request, such as `['body', 'mcp_config']`
   * @throws InvalidInputError for addresses that are not allowed and masks with nothing stored behind them
   * @throws DomainError unauthorized when the user has been removed meanwhile
   */
  async store(
    manager: EntityManager,
    userId: string,
    dto: McpConfigDto | null,
    loc: readonly string[],
  ): Promise<void> {
    await lockUser(manager, userId);
    if (dto === null) {
      await this.configs.removeOf(manager, userId);
      return;
    }
    const before = await this.configs.read(userId, manager);
    const { config, problems } = resolveMasks(dto, before, loc);
    const all = [...this.addressProblems(dto, loc), ...problems];
    if (all.length > 0) {
      throw new InvalidInputError(all);
    }
    await this.configs.replace(manager, userId, config, before);
  }

  /**
   * Changes a user's tool servers within the caller's transaction, as `patchNamedServers` reads the patch. Throws like
   * {@link store}.
   */
  async patch(manager: EntityManager, userId: string, patch: unknown, loc: readonly string[]): Promise<void> {
    await lockUser(manager, userId);
    const before = await this.configs.read(userId, manager);
    const { config, problems } = patchNamedServers(before, patch, loc);
    const all = [...problems, ...this.refusedAddresses(config, loc), ...sizeProblems(config, loc)];
    if (all.length > 0) {
      throw new InvalidInputError(all);
    }
    await this.configs.replace(manager, userId, config, before);
  }

  private refusedAddresses(config: ClearMcpConfig | null, loc: readonly string[]): InputProblem[] {
    return [...(config?.sseServers ?? []), ...(config?.shttpServers ?? [])].flatMap(({ url, details }) => {
      const msg = this.addresses.problem(url);
      const name = details?.['name'];
      const at = typeof name === 'string' ? [name, 'url'] : ['url'];
      return msg === null ? [] : [{ loc: [...loc, ...at], msg, type: 'value_error' }];
    });
  }

  /**
   * A configuration ready to be written without reading what is stored; null when it has masks, which stand for
   * something stored, or more than the three lists. Addresses are not checked, see {@link addressProblems}.
   */
  toColumns(userId: string, dto: McpConfigDto): McpConfigColumns | null {
    const { config, problems } = resolveMasks(dto, null, []);
    return problems.length > 0 || detailsOf(config) !== null ? null : this.configs.toColumns(userId, config);
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

/** Patches add servers, one request after the other. */
function sizeProblems(config: ClearMcpConfig | null, loc: readonly string[]): InputProblem[] {
  return JSON.stringify(config).length > MAX_LENGTH
    ? [
        {
          loc: [...loc],
          msg: `Expected at most ${MAX_LENGTH} characters of JSON in all.`,
          type: 'value_error',
        },
      ]
    : [];
}
