import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { exposedConfig } from '../../mcp-config/exposed-config.js';
import { McpConfigStore } from '../../mcp-config/mcp-config.store.js';
import { emptySettingsRow } from '../../settings/settings-row.js';
import { SettingsKeysReader } from '../../settings/settings-keys.reader.js';
import { SettingsStore } from '../../settings/settings.store.js';
import { SandboxKeys } from '../sandboxes/sandbox-keys.js';
import { type ExposedSecrets, toUserInfoDto, type UserInfoDto } from './dto/user-info.dto.js';

/** Tells clients, and sandboxes that act for them, who a user is and what they have set. */
@Injectable()
export class CurrentUserInfo {
  constructor(
    private readonly settings: SettingsStore,
    private readonly settingsKeys: SettingsKeysReader,
    private readonly mcpConfigs: McpConfigStore,
    private readonly sandboxKeys: SandboxKeys,
  ) {}

  /** Secrets are masked. */
  async masked(userId: string): Promise<UserInfoDto> {
    return toUserInfoDto(userId, (await this.settings.find(userId)) ?? emptySettingsRow(), null);
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
    const [row, secrets] = await Promise.all([this.settings.find(userId), this.secretsOf(userId)]);
    return toUserInfoDto(userId, row ?? emptySettingsRow(), secrets);
  }

  private async secretsOf(userId: string): Promise<ExposedSecrets> {
    const [keys, mcpConfig] = await Promise.all([
      this.settingsKeys.forUser(userId),
      this.mcpConfigs.read(userId),
    ]);
    return { keys, mcpConfig: mcpConfig && exposedConfig(mcpConfig) };
  }
}
