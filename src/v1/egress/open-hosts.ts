import { Injectable } from '@nestjs/common';
import type { AllowedHost, InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { AppConfig } from '../../config/app-config.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import { McpConfigRepository } from '../../settings/mcp/mcp-config.repository.js';
import { isRemote } from '@slipway/tool-servers/tool-servers.js';
import { OperatorDefaults } from '../../settings/operator-defaults.js';
import { LlmProfileRepository } from '../../settings/profiles/llm-profile.repository.js';
import { toolServersOver } from '@slipway/settings/settings-layers.js';
import { SettingsRepository } from '../../settings/settings.repository.js';
import { ConversationRepository } from '../app-conversations/conversation.repository.js';
import { hostAt, modelPlaces } from '@slipway/egress-rules/credential-places.js';
import { RepositoryHosts } from '../app-conversations/outside-credentials/repository-hosts.js';
import { SandboxCallback } from '../sandboxes/sandbox-callback.js';
import { isOutside, type Sandbox } from '../sandboxes/sandbox.entity.js';

type HeldSandbox = Pick<Sandbox, 'id' | 'userId' | 'egressMode'>;

export interface OpenedHosts {
  open: readonly AllowedHost[];
  /** Those that the preset `git` stands for. */
  git: readonly AllowedHost[];
}

/** The hosts that an agent of a user cannot do without. */
@Injectable()
export class OpenHosts {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly profiles: LlmProfileRepository,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly repositories: RepositoryHosts,
    private readonly conversations: ConversationRepository,
    private readonly defaults: OperatorDefaults,
    private readonly callback: SandboxCallback,
    private readonly config: AppConfig,
  ) {}

  /**
   * Those of models, git servers, tool servers, the search and the service itself. Where credentials are outside of the sandbox, only
   * the APIs of its models and its own repositories, and for credentials of its own.
   * @throws SecretDecryptionError
   */
  async of(sandbox: HeldSandbox): Promise<OpenedHosts> {
    const { userId, egressMode } = sandbox;
    const [models, connected, tools] = await Promise.all([
      this.models(sandbox),
      this.repositories.connected(userId),
      this.toolServers(userId),
    ]);
    const { git, agent } = this.config;
    const servers = Object.values(git.servers).flatMap(({ cloneUrl, apiUrl }) => [cloneUrl, apiUrl]);
    const whole = [...tools, agent.tavilyApiUrl, this.callback.webhooksUrl].flatMap(hostOf);
    const gitHosts = connected.flatMap(({ addresses }) => addresses.flatMap(hostOf));
    if (!isOutside(egressMode)) {
      const open = [...models.map(wholeHost), ...servers.flatMap(hostOf), ...gitHosts, ...whole];
      return { open: unique(open), git: unique(gitHosts) };
    }
    const places = [...models, ...(await this.repositories.places(userId, sandbox.id))];
    const clear = connected.filter(({ isClear }) => isClear).flatMap(({ addresses }) => addresses);
    return {
      open: unique([...places.map(ownPlace), ...clear.flatMap(hostOf), ...whole]),
      git: unique(gitHosts),
    };
  }

  private async models({ id, userId }: HeldSandbox): Promise<InjectionPlace[]> {
    const [rows, profiles, used] = await Promise.all([
      ofOwners(userId, async (owner) => await this.settings.load(owner)),
      ofOwners(userId, async (owner) => await this.profiles.list(owner)),
      this.conversations.modelsInSandbox(id),
    ]);
    const { defaultLlmModel, defaultLlmBaseUrl } = this.config.agent;
    const set = rows.map((row) => ({ model: row?.llm_model ?? null, baseUrl: row?.llm_base_url ?? null }));
    const named = profiles.flat().map(({ config }) => ({
      model: textOf(config['model']),
      baseUrl: textOf(config['base_url']),
    }));
    const all = [{ model: defaultLlmModel, baseUrl: defaultLlmBaseUrl }, ...set, ...named, ...used];
    return all.flatMap(({ model, baseUrl }) => modelPlaces(model ?? '', baseUrl) ?? []);
  }

  private async toolServers(userId: string): Promise<string[]> {
    const configs = await ofOwners(userId, async (owner) => await this.mcpConfigs.read(owner));
    const servers = [...configs, this.defaults.layer.toolServers].reduce(toolServersOver, null);
    return servers?.filter(isRemote).map(({ url }) => url) ?? [];
  }
}

async function ofOwners<T>(userId: string, read: (ownerId: string) => Promise<T>): Promise<T[]> {
  return await Promise.all([userId, INSTALLATION_ORGANIZATION_ID].map(read));
}

export function wholeHost({ host, port }: AllowedHost): AllowedHost {
  return port === undefined ? { host } : { host, port };
}

export function ownPlace(place: InjectionPlace): AllowedHost {
  return { ...place, isOwn: true };
}

function unique(hosts: readonly AllowedHost[]): AllowedHost[] {
  return [...new Map(hosts.map((host) => [JSON.stringify(host), host])).values()];
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** Nothing for text that is no address, which a user may have stored. */
function hostOf(address: string): AllowedHost[] {
  const url = URL.parse(address.includes('://') ? address : `https://${address}`);
  return url === null ? [] : hostAt(url);
}
