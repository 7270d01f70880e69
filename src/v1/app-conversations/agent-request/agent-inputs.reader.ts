import { Injectable } from '@nestjs/common';
import type { McpServerEntry, SecretSource } from '@slipway/agent-protocol/conversation-api.js';
import { isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import { RepositoryAccessService } from '../../../git-providers/repository-access.service.js';
import type { StoredCredential } from '../../../git-providers/tokens/provider-token.repository.js';
import { TokenRenewals } from '../../../git-providers/tokens/token-renewals.js';
import { McpConfigRepository } from '../../../settings/mcp/mcp-config.repository.js';
import { withSecrets } from '@slipway/tool-servers/secret-references.js';
import { commonMembers, isRemote, type ToolServer, withNames } from '@slipway/tool-servers/tool-servers.js';
import { OperatorDefaults } from '../../../settings/operator-defaults.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../../organizations/installation-organization.js';
import {
  layered,
  llmOf,
  NO_MODEL,
  type SettingsLayer,
  sharedModel,
} from '@slipway/settings/settings-layers.js';
import type { SettingsDocument } from '@slipway/settings/settings.schema.js';
import {
  type AgentSecret,
  AgentSecretsReader,
  type SecretShown,
} from '../../../settings/secrets/agent-secrets.reader.js';
import { LlmProfileRepository } from '../../../settings/profiles/llm-profile.repository.js';
import { effectiveSettings, SettingsRepository } from '../../../settings/settings.repository.js';
import {
  type AgentSettings,
  agentSettings,
  overMembers,
  withBudget,
  withLayer,
  withoutModel,
  withProfile,
} from '@slipway/settings/agent-settings.js';
import type { SandboxSettings } from '../../sandboxes/lifecycle/launch-plan.js';
import { visibleSecrets } from '../start-task.entity.js';
import type { ConversationGrants } from '../start-task.repository.js';
import { OwnToolServer } from './own-tool-server.js';

/** Null provider: the first that has such a name. */
export interface WorkRepository {
  repository: string;
  provider: ProviderType | null;
}

export interface AgentConfiguration {
  sandbox: SandboxSettings;
  settings: AgentSettings;
  mcpConfig: readonly ToolServer[] | null;
  /** What the organization has of models, keys and tool servers. */
  shared: SettingsLayer<Pick<AgentSettings, 'search_api_key'>>;
  /** The requested profile does not exist, so the settings' model replaces it. */
  lacksProfile: boolean;
}

/** Stored secrets in clear. Must never get into a response, a row or a log. */
export interface AgentInputs extends AgentConfiguration {
  secrets: ReadonlyMap<string, AgentSecret>;
  credentials: readonly StoredCredential[];
}

/** What a caller has for the inputs of an agent. */
export interface GivenInputs {
  /** What is given of each of the user's own secrets; by default, its value. */
  shown?: SecretShown | undefined;
  /** Of git hosts, where the caller has read them. */
  credentials?: readonly StoredCredential[] | undefined;
}

interface StoredInputs {
  document: SettingsDocument;
  settings: AgentSettings;
  mcpConfig: readonly ToolServer[] | null;
  /** The configuration of the requested one; null: there is none. */
  profile: JsonObject | null;
}

/** What programs may have that a user can look into. */
function withoutSecrets(layer: SettingsLayer): SettingsLayer {
  return { ...layer, llm: NO_MODEL, toolServers: null };
}

/** Reads what a user and the organization have stored for agents, each table once for each. */
@Injectable()
export class AgentInputsReader {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly tokens: TokenRenewals,
    private readonly secrets: AgentSecretsReader,
    private readonly profiles: LlmProfileRepository,
    private readonly ownToolServer: OwnToolServer,
    private readonly access: RepositoryAccessService,
    private readonly defaults: OperatorDefaults,
  ) {}

  /**
   * @param repository of the work, for which an installation may stand in; null: none
   * @throws SecretDecryptionError
   */
  async read(
    userId: string,
    configuration: AgentConfiguration,
    { startId, own, limits, maxBudget }: ConversationGrants,
    repository: WorkRepository | null,
    { shown, credentials }: GivenInputs = {},
  ): Promise<AgentInputs> {
    const stored = credentials ?? (await this.tokens.current(userId));
    const usable = await this.access.withTokensFor(userId, stored, repository);
    const secrets = await this.secrets.forUser(userId, usable, visibleSecrets([limits]), shown);
    for (const [name, value] of own) {
      secrets.set(name, { value, description: null });
    }
    return {
      ...configuration,
      settings: withBudget(configuration.settings, maxBudget),
      mcpConfig: this.ownToolServer.calledFrom(
        startId,
        configuration.mcpConfig && withSecrets(configuration.mcpConfig, secrets),
      ),
      secrets,
      credentials: usable,
    };
  }

  /** Needs only the database; a null profile means the settings. Throws SecretDecryptionError. */
  async readConfiguration(userId: string, profile: string | null): Promise<AgentConfiguration> {
    const stored = await this.stored([userId, INSTALLATION_ORGANIZATION_ID], profile);
    const [own, organization] = [stored(userId), stored(INSTALLATION_ORGANIZATION_ID)];
    const isOwn = own.profile !== null || organization.profile === null;
    const shared = isOwn ? organization.settings : withProfile(organization.settings, organization.profile);
    const settings = isOwn ? withProfile(own.settings, own.profile) : withoutModel(own.settings);
    return {
      sandbox: effectiveSettings(own.document, organization.document),
      settings: overMembers(settings, shared),
      mcpConfig: own.mcpConfig,
      shared: {
        ...sharedModel({
          owner: 'organization',
          llm: llmOf(shared, shared),
          parameters: shared.llm_parameters,
        }),
        members: { search_api_key: shared.search_api_key },
        toolServers: organization.mcpConfig,
      },
      lacksProfile: profile !== null && (own.profile ?? organization.profile) === null,
    };
  }

  private async stored(
    ownerIds: readonly string[],
    profile: string | null,
  ): Promise<(ownerId: string) => StoredInputs> {
    const [settingsOf, mcpConfigOf, profiles] = await Promise.all([
      this.settings.loadEachWithKeys(ownerIds),
      this.mcpConfigs.readEach(ownerIds),
      profile === null ? [] : Promise.all(ownerIds.map((id) => this.profiles.findNamed(id, profile))),
    ]);
    return (ownerId) => {
      const { settings, keys, details, document } = settingsOf(ownerId);
      return {
        document,
        settings: agentSettings(settings, keys, details),
        mcpConfig: mcpConfigOf(ownerId),
        profile: profiles[ownerIds.indexOf(ownerId)]?.config ?? null,
      };
    };
  }

  /**
   * A configuration with what the organization and the operator give to users who have none.
   * @param use the model that the conversation names itself, and whether only our own agent server sees keys: a user can
   *   read what other programs get, and what runs in an image of the user's own
   */
  withDefaults(
    configuration: AgentConfiguration,
    { model, isOurs }: { model: string | null; isOurs: boolean },
  ): AgentConfiguration {
    const { settings, mcpConfig, shared } = configuration;
    const below = isOurs ? layered(shared, this.defaults.layer) : withoutSecrets(this.defaults.layer);
    const completed = withLayer(settings, mcpConfig, isOurs ? model : null, below);
    return { ...configuration, ...completed };
  }
}

/** Secrets as agent servers take them. */
export function secretSources(secrets: ReadonlyMap<string, AgentSecret>): Record<string, SecretSource> {
  return Object.fromEntries(
    [...secrets].map(([name, { value, description }]) => [
      name,
      { kind: 'StaticSecret', value, ...(description !== null && { description }) },
    ]),
  );
}

/** Tool servers by name, as agent servers take them. */
export function mcpServerEntries(
  servers: readonly ToolServer[] | null,
  namesTools = true,
): Record<string, McpServerEntry> {
  const enabled = withNames(servers ?? []).filter(([, { details }]) => details['enabled'] !== false);
  // Last, so that a command wins over a remote server of the same name.
  const commands = enabled.filter(([, server]) => !isRemote(server));
  return Object.fromEntries(
    [...enabled.filter(([, server]) => isRemote(server)), ...commands].map(([name, server]) => [
      name,
      // What our own agent server takes beside the published members.
      { ...toEntry(server), ...(namesTools && commonMembers(server.details)) },
    ]),
  );
}

/** Keys are pasted as their host shows them, in the header that carries them. */
const WITH_SCHEME = /^(Bearer|Basic) \S/i;

function toEntry(server: ToolServer): McpServerEntry {
  if (!isRemote(server)) {
    return { command: server.command, args: server.args, env: Object.fromEntries(server.env) };
  }
  const { transport, url, apiKey, details } = server;
  const headers = {
    ...headersOf(details),
    ...(apiKey !== null && { Authorization: WITH_SCHEME.test(apiKey) ? apiKey : `Bearer ${apiKey}` }),
  };
  return { url, transport, ...(Object.keys(headers).length > 0 && { headers }) };
}

function headersOf({ headers }: JsonObject): Record<string, string> {
  return Object.fromEntries(
    Object.entries(isJsonObject(headers) ? headers : {}).map(([name, value]) => [name, String(value)]),
  );
}
