import { Injectable } from '@nestjs/common';
import { modelEndpoint } from '@slipway/common/model-endpoint.js';
import { AppConfig } from '../../config/app-config.js';
import { type EgressHostRule, parseEgressHost } from '../../config/egress-rules.js';
import { ProviderTokenRepository } from '../../git-providers/tokens/provider-token.repository.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import { McpConfigRepository } from '../../settings/mcp/mcp-config.repository.js';
import { OperatorDefaults } from '../../settings/operator-defaults.js';
import { isRemote } from '../../settings/mcp/tool-servers.js';
import { toolServersOver } from '../../settings/settings-layers.js';
import { LlmProfileRepository } from '../../settings/profiles/llm-profile.repository.js';
import { SettingsRepository } from '../../settings/settings.repository.js';
import { ConversationRepository } from '../app-conversations/conversation.repository.js';
import { SandboxCallback } from '../sandboxes/sandbox-callback.js';

/** `isOfCredential`: only because the model or the repository is there, so that a sandbox needs no more of it than its credential opens. */
export type OpenHost = EgressHostRule & { isOfCredential?: true };

const ANTHROPIC_URL = 'https://api.anthropic.com';

/** The hosts that an agent of a user cannot do without. */
@Injectable()
export class OpenHosts {
  constructor(
    private readonly settings: SettingsRepository,
    private readonly profiles: LlmProfileRepository,
    private readonly mcpConfigs: McpConfigRepository,
    private readonly tokens: ProviderTokenRepository,
    private readonly conversations: ConversationRepository,
    private readonly defaults: OperatorDefaults,
    private readonly callback: SandboxCallback,
    private readonly config: AppConfig,
  ) {}

  /** Those of models, git servers, tool servers, the search and the service itself. @throws SecretDecryptionError */
  async of(userId: string, sandboxId: string): Promise<OpenHost[]> {
    const owners = [userId, INSTALLATION_ORGANIZATION_ID];
    const all = async <T>(read: (ownerId: string) => Promise<T>): Promise<T[]> =>
      await Promise.all(owners.map(read));
    const [rows, profiles, configs, gitHosts, models] = await Promise.all([
      all((id) => this.settings.load(id)),
      all((id) => this.profiles.list(id)),
      all((id) => this.mcpConfigs.read(id)),
      this.tokens.hosts(userId),
      this.conversations.modelsInSandbox(sandboxId),
    ]);
    const { git, agent } = this.config;
    const operator = { model: agent.defaultLlmModel, baseUrl: agent.defaultLlmBaseUrl };
    const set = rows.map((row) => ({ model: row?.llm_model ?? null, baseUrl: row?.llm_base_url ?? null }));
    const named = profiles.flat().map(({ config }) => ({
      model: textOf(config['model']),
      baseUrl: textOf(config['base_url']),
    }));
    const servers = [...configs, this.defaults.layer.toolServers].reduce(toolServersOver, null);
    const ofModels = [operator, ...set, ...named, ...models].flatMap(addressOfModel);
    const ofGit = [
      ...Object.values(git.servers).flatMap(({ cloneUrl, apiUrl }) => [cloneUrl, apiUrl]),
      ...[...gitHosts.values()].filter((host) => host !== null),
    ];
    // Agents of others may have keys of their own for the same host.
    const isOurs = models.length > 0 && models.every((each) => each.isOurs);
    const addresses = [
      ...(servers?.filter(isRemote) ?? []).map(({ url }) => url),
      agent.tavilyApiUrl,
      this.callback.webhooksUrl,
      ...(isOurs ? [] : ofModels),
    ];
    const wide = addresses.flatMap(hostOf);
    const narrow = [...ofGit, ...(isOurs ? ofModels : [])].flatMap(hostOf);
    return uniqueHosts([...wide, ...narrow.map((rule) => ({ ...rule, isOfCredential: true as const }))]);
  }
}

/** Of those that are the same, the first. */
function uniqueHosts(hosts: OpenHost[]): OpenHost[] {
  const named = new Map(hosts.toReversed().map((each) => [`${each.host} ${each.port}`, each]));
  return hosts.filter((each) => named.get(`${each.host} ${each.port}`) === each);
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function addressOfModel({ model, baseUrl }: { model: string | null; baseUrl: string | null }): string[] {
  const endpoint = modelEndpoint(model ?? '', baseUrl);
  return 'problem' in endpoint ? [] : [endpoint.baseUrl ?? ANTHROPIC_URL];
}

/** Nothing for text that is no address, which a user may have stored; one with `*.` would be a rule for all names below. */
function hostOf(address: string): EgressHostRule[] {
  const url = URL.parse(address.includes('://') ? address : `https://${address}`);
  const host = url === null ? null : parseEgressHost(url.host);
  return host === null || host.host.startsWith('*.') ? [] : [host];
}
