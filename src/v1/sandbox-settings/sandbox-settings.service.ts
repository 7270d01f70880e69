import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { McpConfigRepository } from '../../mcp-config/mcp-config.repository.js';
import { exposedConfig } from '../../mcp-config/mcp-secrets.js';
import { type AgentSecretDescription, AgentSecretsReader } from '../../settings/agent-secrets.reader.js';
import { emptySettingsRow } from '../../settings/settings-table.js';
import { SettingsRepository } from '../../settings/settings.repository.js';
import { StartTaskRepository } from '../app-conversations/start-task.repository.js';
import { type SandboxKeyHolder, SandboxKeyQueries } from '../sandboxes/sandbox-key.queries.js';
import { toUserInfoDto, type UserInfoDto } from './sandbox-settings.dto.js';

/** Reads a user's settings and secrets for programs in the user's sandboxes. */
@Injectable()
export class SandboxSettingsService {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly secrets: AgentSecretsReader,
    private readonly sandboxKeys: SandboxKeyQueries,
    private readonly starts: StartTaskRepository,
  ) {}

  /** The user's settings with all secrets masked. */
  async userInfo(userId: string): Promise<UserInfoDto> {
    return toUserInfoDto(userId, (await this.settings.load(userId)) ?? emptySettingsRow(), null);
  }

  /**
   * The user's settings with all secrets in clear.
   *
   * @param sandboxKey the header `X-Session-API-Key`
   * @throws DomainError unauthorized unless it is the key of a running sandbox, forbidden when the sandbox is another
   *   user's
   */
  async userInfoInClear(userId: string, sandboxKey: string | undefined): Promise<UserInfoDto> {
    const sandbox = sandboxKey === undefined ? null : await this.sandboxKeys.find(sandboxKey);
    if (!sandbox?.running) {
      throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
    }
    if (sandbox.userId !== userId) {
      throw new DomainError('forbidden', 'forbidden', 'The sandbox belongs to another user.');
    }
    const [{ row, keys }, mcpConfig] = await Promise.all([
      this.settings.loadShownWithKeys(userId),
      this.mcpConfigs.read(userId),
    ]);
    const exposed = { keys, mcpConfig: mcpConfig && exposedConfig(mcpConfig) };
    return toUserInfoDto(userId, row ?? emptySettingsRow(), exposed);
  }

  /**
   * The secrets of a sandbox's user, without their values and ordered by name. If every conversation of the sandbox was
   * started with a list of names (`secret_names`), only those.
   *
   * @throws DomainError unauthorized unless the sandbox runs, forbidden when the key belongs to another sandbox
   */
  async listSecrets(holder: SandboxKeyHolder, sandboxId: string): Promise<AgentSecretDescription[]> {
    requireOwnRunningSandbox(holder, sandboxId);
    return await this.secrets.describe(holder.userId, await this.visibleNames(holder));
  }

  /**
   * The value of one secret.
   *
   * @throws DomainError as `listSecrets` does; not_found for an unknown name
   */
  async findSecret(holder: SandboxKeyHolder, sandboxId: string, name: string): Promise<string> {
    requireOwnRunningSandbox(holder, sandboxId);
    const value = await this.secrets.find(holder.userId, name, await this.visibleNames(holder));
    if (value === null) {
      throw new DomainError('not_found', 'not_found', `There is no secret named ${name}.`);
    }
    return value;
  }

  private async visibleNames({ userId, sandboxId }: SandboxKeyHolder): Promise<string[] | null> {
    return await this.starts.secretNamesOfSandbox(userId, sandboxId);
  }
}

function requireOwnRunningSandbox(holder: SandboxKeyHolder, sandboxId: string): void {
  if (!holder.running) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
  if (holder.sandboxId !== sandboxId) {
    throw new DomainError('forbidden', 'forbidden', 'The key belongs to another sandbox.');
  }
}
