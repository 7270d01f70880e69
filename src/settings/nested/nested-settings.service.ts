import { Injectable } from '@nestjs/common';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { type JsonObject, without } from '@slipway/common/json-access.js';
import { InvalidInputError, requireNone, type InputProblem } from '@slipway/api/errors/problem-error.js';
import { SettingsDto, type SettingsWarningDto, SHOWN_ONLY, unknownMembers } from '../flat/settings.dto.js';
import { SettingsService } from '../flat/settings.service.js';
import { McpConfigRepository } from '../mcp/mcp-config.repository.js';
import { shownNamedServers } from '@slipway/tool-servers/named-servers.js';
import { llmOf } from '@slipway/settings/settings-layers.js';
import { LlmProfileRepository } from '../profiles/llm-profile.repository.js';
import { activeProfile } from '../profiles/profiles.service.js';
import { SettingsCipher, SettingsRepository } from '../settings.repository.js';
import { SETTINGS } from '@slipway/settings/settings.schema.js';
import { SharedSettings } from '../shared-settings.js';
import { emptySettingsRow } from '@slipway/settings/settings-row.js';
import { APP_DEFAULTS, type NestedSettings, type NestedSettingsDto } from './nested-settings.dto.js';
import {
  changesDetails,
  detailsOver,
  mergeDetails,
  readNestedChange,
  type SettingsDetails,
  shownAgentSettings,
  shownConversationSettings,
  withoutEchoes,
} from '@slipway/settings/nested-settings.js';

const KNOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...Object.keys(SETTINGS),
  'agent_settings_diff',
  'conversation_settings_diff',
]);

/** Members of a response that are ignored in a request. */
const ECHOES: ReadonlySet<string> = new Set([
  ...SHOWN_ONLY,
  'llm_profiles',
  'active_agent_profile_id',
  'active_agent_profile_revision',
  'inherited_marketplaces',
]);

const KEPT = 'This member is not known here: it is kept and shown, and has no effect.';

/** Legacy names of the diffs. They are refused: whole settings sent under them would replace what is stored. */
const LEGACY_MEMBERS = ['agent_settings', 'conversation_settings'] as const;

/** The settings in nested form: the same rows as the flat ones. */
@Injectable()
export class NestedSettingsService {
  constructor(
    private readonly settings: SettingsService,
    private readonly repository: SettingsRepository,
    private readonly cipher: SettingsCipher,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly profiles: LlmProfileRepository,
    private readonly addresses: OutboundAddresses,
    private readonly shared: SharedSettings,
  ) {}

  /**
   * Returns the defaults when nothing is stored: newer clients treat a 404 as an error, and show it behind their forms.
   */
  async find(userId: string): Promise<NestedSettings> {
    const [row, mcpConfig, profiles] = await Promise.all([
      this.repository.load(userId),
      this.mcpConfigs.read(userId),
      this.profiles.list(userId),
    ]);
    const [keys, details] = [this.cipher.keysOf(userId, row), this.cipher.detailsOf(userId, row)];
    const own = row ?? emptySettingsRow();
    return {
      ...(await this.shown(userId, row)),
      mcpServers: shownNamedServers(mcpConfig),
      inClear: { keys, toolServers: mcpConfig },
      profiles,
      activeProfile: activeProfile(profiles, llmOf(own, keys), details),
    };
  }

  /** What lies below the owner's settings included. */
  private async shown(
    userId: string,
    row: Awaited<ReturnType<SettingsRepository['load']>>,
  ): Promise<Pick<NestedSettings, 'row' | 'details'>> {
    const own = row ?? emptySettingsRow();
    return {
      row: (await this.shared.shown(userId, own)) ?? own,
      details: detailsOver(this.cipher.detailsOf(userId, row), await this.shared.detailsBelow(userId)),
    };
  }

  /**
   * Merges a request into what is stored; all of it or nothing.
   * @param body the request as it was sent, unknown members included
   * @throws InvalidInputError, and what `SettingsService.store` throws
   */
  async store(userId: string, dto: NestedSettingsDto, body: JsonObject): Promise<SettingsWarningDto[]> {
    refuseLegacyMembers(body);
    const { agent_settings_diff: agent = {}, conversation_settings_diff: conversation = {}, ...flat } = dto;
    const { row, details } = await this.shown(userId, await this.repository.load(userId));
    const change = readNestedChange(
      withoutEchoes(agent, without(shownAgentSettings(row, details, {}), ['mcp_config'])),
      withoutEchoes(conversation, shownConversationSettings(row, details)),
      preferencesOf(body, KNOWN_MEMBERS),
    );
    this.checkAddress(change.flat['llm_base_url']);
    const changed = Object.assign(new SettingsDto(), flat, change.flat);
    const warnings = await this.settings.store(userId, changed, {
      ...(changesDetails(change) && {
        details: (stored: SettingsDetails) => mergeDetails(stored, change.details),
      }),
      ...(change.mcpConfig !== undefined && {
        mcpServers: { patch: change.mcpConfig, loc: ['body', 'agent_settings_diff', 'mcp_config'] },
      }),
    });
    const unknown = preferencesOf(body, KNOWN_MEMBERS);
    return [...warnings, ...unknownMembers(unknown, KEPT, (name) => Object.hasOwn(APP_DEFAULTS, name))];
  }

  private checkAddress(baseUrl: unknown): void {
    if (typeof baseUrl !== 'string' || baseUrl.trim() === '') {
      return;
    }
    const msg = addressProblem(baseUrl.trim(), ['http', 'https']) ?? this.addresses.problem(baseUrl.trim());
    if (msg !== null) {
      const loc = ['body', 'agent_settings_diff', 'llm', 'base_url'];
      throw new InvalidInputError({ loc, msg, type: 'value_error' });
    }
  }
}

/** The members of a body that are preferences: those that belong neither to the flat settings nor to a response. */
function preferencesOf(body: JsonObject, known: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(body).filter(
      ([name]) => !known.has(name) && !ECHOES.has(name) && !LEGACY_MEMBERS.some((legacy) => legacy === name),
    ),
  );
}

function refuseLegacyMembers(body: JsonObject): void {
  const problems = LEGACY_MEMBERS.filter((name) => Object.hasOwn(body, name)).map((name): InputProblem => ({
    loc: ['body', name],
    msg: `Expected the changes alone: send them as ${name}_diff.`,
    type: 'value_error',
  }));
  requireNone(problems);
}
