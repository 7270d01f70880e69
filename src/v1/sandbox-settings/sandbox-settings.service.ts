import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { isJsonObject, type JsonObject, mergePatch } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { type StoredSettingsDto, toStoredSettingsDto } from '../../settings/flat/settings.dto.js';
import { exposedServers } from '@slipway/tool-servers/listed-servers.js';
import { namedServers } from '@slipway/tool-servers/named-servers.js';
import { type NestedSettings, toShownNestedSettingsDto } from '../../settings/nested/nested-settings.dto.js';
import { masked } from '@slipway/settings/nested-settings.js';
import { NestedSettingsService } from '../../settings/nested/nested-settings.service.js';
import type { SettingsKeys } from '@slipway/settings/settings-row.js';
import { noSandboxKey, SandboxKeyQueries } from '../sandboxes/sandbox-key.guard.js';
import type { UserInfoDto } from './sandbox-settings.dto.js';

/** Reads a user's settings for the user, and for programs in the user's sandboxes. */
@Injectable()
export class SandboxSettingsService {
  constructor(
    private readonly sandboxKeys: SandboxKeyQueries,
    private readonly audit: AuditRepository,
    private readonly dataSource: DataSource,
    private readonly nested: NestedSettingsService,
  ) {}

  /** The user's settings with all secrets masked. */
  async userInfo(userId: string): Promise<UserInfoDto> {
    return toUserInfoDto(userId, await this.nested.find(userId), false);
  }

  /**
   * @throws DomainError unauthorized unless `sandboxKey` (`X-Session-API-Key`) is the key of a running sandbox,
   * forbidden when that sandbox is another user's
   */
  async userInfoInClear(userId: string, sandboxKey: string | undefined): Promise<UserInfoDto> {
    const sandbox = sandboxKey === undefined ? null : await this.sandboxKeys.find(sandboxKey);
    if (!sandbox?.running) {
      throw noSandboxKey();
    }
    if (sandbox.userId !== userId) {
      throw sandboxOfAnother();
    }
    const settings = await this.nested.find(userId);
    // The entry comes first: no key is shown in clear without one.
    await this.dataSource.transaction((manager) =>
      this.audit.append(manager, {
        action: 'settings.expose',
        resourceId: null,
        ownerId: userId,
        details: { sandbox_id: sandbox.sandboxId, ...sandbox.cause },
      }),
    );
    return toUserInfoDto(userId, settings, true);
  }
}

export function sandboxOfAnother(): DomainError {
  return new DomainError('forbidden', 'The sandbox belongs to another user.');
}

function toUserInfoDto(id: string, settings: NestedSettings, isExposed: boolean): UserInfoDto {
  const { row, details, inClear, mcpServers, profiles, activeProfile } = settings;
  const flat: Omit<StoredSettingsDto, keyof SettingsKeys> = toStoredSettingsDto(row);
  const shown = toShownNestedSettingsDto(settings);
  const keyOf = (name: keyof SettingsKeys): string | null =>
    isExposed ? inClear.keys[name] : row[`${name}_set`] ? MASK : null;
  // The stored members stand over their masks.
  const agent = isExposed ? mergePatch(shown.agent_settings, details.agent) : shown.agent_settings;
  const configOf = (config: JsonObject): unknown =>
    isExposed ? { ...config } : masked({ llm: config })['llm'];
  return {
    id,
    ...flat,
    provider_tokens_unverified: row.provider_tokens_unverified ?? [],
    llm_api_key: keyOf('llm_api_key'),
    search_api_key: keyOf('search_api_key'),
    sandbox_api_key: keyOf('sandbox_api_key'),
    mcp_config: isExposed ? inClear.toolServers && exposedServers(inClear.toolServers) : row.mcp_config,
    agent_settings: {
      ...agent,
      llm: {
        ...(isJsonObject(agent['llm']) && agent['llm']),
        api_key: isExposed || inClear.keys.llm_api_key === null ? inClear.keys.llm_api_key : MASK,
      },
      mcp_config: isExposed ? Object.fromEntries(namedServers(inClear.toolServers)) : mcpServers,
    },
    conversation_settings: shown.conversation_settings,
    llm_profiles: {
      profiles: Object.fromEntries(profiles.map(({ name, config }) => [name, configOf(config)])),
      active: activeProfile,
    },
    disabled_skills: shown['disabled_skills'],
    sandbox_grouping_strategy: shown['sandbox_grouping_strategy'],
    default_sandbox_spec_id: shown['default_sandbox_spec_id'],
  };
}
