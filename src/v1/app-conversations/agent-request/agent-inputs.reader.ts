import { Injectable, Logger } from '@nestjs/common';
import type { McpServerEntry, SecretSource } from '@slipway/agent-protocol/conversation-api.js';
import { DEFAULT_IDENTITY } from '@slipway/agent-protocol/default-identity.js';
import { type GitAccess, type GitIdentity, type GitServerCredential } from '@slipway/agent-protocol/git.js';
import { isJsonObject, type JsonObject } from '@slipway/common/json-access.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import { AppConfig } from '../../../config/app-config.js';
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
import { type ConversationLimits, gitMode, hasTokens, visibleSecrets } from '../start-task.entity.js';
import type { ConversationGrants } from '../start-task.repository.js';
import { OwnToolServer } from './own-tool-server.js';

/** The repository of an agent's work (null: none) and what the agent may do with it. */
export interface RepositoryUse {
  userId: string;
  repository: string | null;
  provider: ProviderType | null;
  limits: ConversationLimits;
}

/** Null provider: the first that has such a name. */
export interface WorkRepository {
  repository: string;
  provider: ProviderType | null;
}

type GitSettings = Pick<AgentSettings, 'git_user_name' | 'git_user_email'>;

/** From the settings, completed with defaults; null: they have none, and the repository's own counts. */
export function gitIdentity({ git_user_name: name, git_user_email: email }: GitSettings): GitIdentity | null {
  const given = { name: oneLine(name), email: oneLine(email) };
  if (given.name === '' && given.email === '') {
    return null;
  }
  return {
    name: given.name || given.email.split('@', 1)[0] || DEFAULT_IDENTITY.name,
    email: given.email || DEFAULT_IDENTITY.email,
  };
}

/** git's configuration is line-based. */
function oneLine(text: string | null): string {
  return textHead((text ?? '').replaceAll(/[\p{Cc}<>]+/gu, ' ').trim(), 200);
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
  private readonly logger = new Logger(AgentInputsReader.name);

  constructor(
    private readonly settings: SettingsRepository,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly tokens: TokenRenewals,
    private readonly secrets: AgentSecretsReader,
    private readonly profiles: LlmProfileRepository,
    private readonly ownToolServer: OwnToolServer,
    private readonly access: RepositoryAccessService,
    private readonly config: AppConfig,
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

  /**
   * A credential for each server that the user has a token for (of an installation: one for the work's repository), in the order of `PROVIDER_TYPES`, unless the conversation's
   * limits keep the token from it; then at most one for its own repository. Unavailable ones are logged and left out.
   */
  async gitAccess(
    use: RepositoryUse,
    settings: GitSettings,
    stored: readonly StoredCredential[],
  ): Promise<GitAccess> {
    const { userId, limits } = use;
    const isVisible = visibleSecrets([limits]);
    const found = await Promise.all(
      (gitMode(limits) === 'write' ? stored : []).map((credential) =>
        this.orNull(credential.provider, this.access.serverCredential(userId, credential)),
      ),
    );
    const byPlace = new Map<string, GitServerCredential>();
    const named = found.flatMap((each) => (each && isVisible(each.tokenVariable, true) ? [each.access] : []));
    const all: GitServerCredential[] = [...named, ...(await this.ownRepositories(use, stored))];
    for (const credential of all) {
      // The user's own token comes before the one of enterprise_sso for the same server.
      const place = credential.repository ?? credential.origin;
      if (!byPlace.has(credential.origin) && !byPlace.has(place)) {
        byPlace.set(place, credential);
      }
    }
    return {
      credentials: [...byPlace.values()],
      expose: this.config.agent.exposeGitTokens && named.length > 0,
      mode: gitMode(limits),
      identity: gitIdentity(settings),
    };
  }

  /** Returns credentials for its repository and the fork that it works in, when the limits withhold the token itself. */
  private async ownRepositories(
    { userId, repository, provider, limits }: RepositoryUse,
    stored: readonly StoredCredential[],
  ): Promise<GitServerCredential[]> {
    // The operator keeps all from an ACP agent that gets none.
    if (repository === null || gitMode(limits) === 'none' || hasTokens(limits) || stored.length === 0) {
      return [];
    }
    const { head = null, fork = null } = limits.work_place ?? {};
    const names = [repository, head?.repository ?? null, fork].filter((name) => name !== null);
    const found = await Promise.all(
      names.map((name) => this.orNull(provider, this.access.cloneAccess(userId, provider, name))),
    );
    return found.flatMap((each) =>
      each?.credential
        ? [{ ...each.credential, origin: new URL(each.url).origin, repository: each.url }]
        : [],
    );
  }

  private async orNull<T>(provider: ProviderType | null, reading: Promise<T>): Promise<T | null> {
    try {
      return await reading;
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      this.logger.warn('failed to get the credentials of a git server for an agent', {
        provider,
        code: error.code,
      });
      return null;
    }
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
