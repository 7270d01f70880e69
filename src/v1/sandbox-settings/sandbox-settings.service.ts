import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { McpConfigRepository } from '../../mcp-config/mcp-config.repository.js';
import { exposedConfig } from '../../mcp-config/mcp-secrets.js';
import { type AgentSecretDescription, AgentSecretsReader } from '../../settings/agent-secrets.reader.js';
import { emptySettingsRow } from '../../settings/settings-table.js';
import { SettingsRepository } from '../../settings/settings.repository.js';
import { type SandboxKeyHolder, SandboxKeys } from '../sandboxes/sandbox.queries.js';
import { type ExposedSecrets, toUserInfoDto, type UserInfoDto } from './sandbox-settings.dto.js';

/** Tells clients, and sandboxes that act for them, who a user is and what they have set. */
@Injectable()
export class CurrentUserInfo {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly sandboxKeys: SandboxKeys,
  ) {}

  /** Secrets are masked. */
  async masked(userId: string): Promise<UserInfoDto> {
    return toUserInfoDto(userId, (await this.settings.load(userId)) ?? emptySettingsRow(), null);
  }

  /**
   * Secrets are in clear.
   *
   * @param sandboxKey what came in `X-Session-API-Key`
   * @throws DomainError unauthorized unless it is the key of a running sandbox, forbidden when that is another user's
   */
  async exposed(userId: string, sandboxKey: string | undefined): Promise<UserInfoDto> {
    const sandbox = sandboxKey === undefined ? null : await this.sandboxKeys.find(sandboxKey);
    if (!sandbox?.running) {
      throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
    }
    if (sandbox.userId !== userId) {
      throw new DomainError('forbidden', 'forbidden', 'The sandbox belongs to another user.');
    }
    const [row, secrets] = await Promise.all([this.settings.load(userId), this.secretsOf(userId)]);
    return toUserInfoDto(userId, row ?? emptySettingsRow(), secrets);
  }

  private async secretsOf(userId: string): Promise<ExposedSecrets> {
    const [{ keys }, mcpConfig] = await Promise.all([
      this.settings.loadWithKeys(userId),
      this.mcpConfigs.read(userId),
    ]);
    return { keys, mcpConfig: mcpConfig && exposedConfig(mcpConfig) };
  }
}

/** Hands the secrets of a sandbox's owner to what runs in the sandbox. */
@Injectable()
export class SandboxSecretsService {
  constructor(private readonly secrets: AgentSecretsReader) {}

  /**
   * Names and descriptions, by name.
   *
   * @throws DomainError unauthorized unless the sandbox runs, forbidden when it is another one
   */
  async list(holder: SandboxKeyHolder, sandboxId: string): Promise<AgentSecretDescription[]> {
    requireOwnRunning(holder, sandboxId);
    return await this.secrets.describe(holder.userId);
  }

  /**
   * One value.
   *
   * @throws DomainError as {@link list}; not_found for an unknown name
   */
  async find(holder: SandboxKeyHolder, sandboxId: string, name: string): Promise<string> {
    requireOwnRunning(holder, sandboxId);
    const value = await this.secrets.find(holder.userId, name);
    if (value === null) {
      throw new DomainError('not_found', 'not_found', `There is no secret named ${name}.`);
    }
    return value;
  }
}

function requireOwnRunning(holder: SandboxKeyHolder, sandboxId: string): void {
  if (!holder.running) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
  if (holder.sandboxId !== sandboxId) {
    throw new DomainError('forbidden', 'forbidden', 'The key belongs to another sandbox.');
  }
}
