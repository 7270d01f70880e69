import { Injectable } from '@nestjs/common';
import type { InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { AppConfig } from '../../../config/app-config.js';
import type { StoredCredential } from '../../../git-providers/tokens/provider-token.repository.js';
import { TokenRenewals } from '../../../git-providers/tokens/token-renewals.js';
import { referencedSecrets, withSecrets } from '@slipway/tool-servers/secret-references.js';
import { type AgentSecret, AgentSecretsReader } from '../../../settings/secrets/agent-secrets.reader.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import type { AcpAgent } from '../agent-request/acp-agents.js';
import {
  type AgentConfiguration,
  AgentInputsReader,
  mcpServerEntries,
} from '../agent-request/agent-inputs.reader.js';
import { AgentKeysReader, type FoundAgentKey, withoutHosts } from './agent-keys.reader.js';
import type { ModelSource } from '@slipway/egress-rules/concealer.js';
import { modelPlaces, stockModelPlaces } from '@slipway/egress-rules/credential-places.js';
import { type KeptPlaceholder, PlaceholderRepository } from './placeholder.repository.js';
import {
  searchCredential,
  type ToolCredential,
  toolCredentials,
} from '@slipway/egress-rules/tool-credentials.js';

type Holder = Pick<RunningSandbox, 'sandboxId' | 'userId'>;

/** What a caller has read itself. */
interface KnownConfiguration {
  profile: string | null;
  configuration: AgentConfiguration;
}

interface KeptPlaceholders {
  /** Those that were kept since are added. */
  known: KeptPlaceholder[];
  /** Whether the sandbox had some before. */
  isInUse: boolean;
}

interface ModelKey {
  value: string;
  /** Null: it stays in the sandbox. */
  hosts: InjectionPlace[] | null;
  model: string;
  baseUrl: string | null;
}

/** Shorter ones would be found in any text. */
export const MIN_LENGTH = 8;

/** Reads what may be concealed in sandboxes. */
@Injectable()
export class HolderReader {
  constructor(
    readonly placeholders: PlaceholderRepository,
    readonly tokens: TokenRenewals,
    readonly inputs: AgentInputsReader,
    readonly secrets: AgentSecretsReader,
    readonly agents: AgentKeysReader,
    readonly config: AppConfig,
  ) {}

  of(holder: Holder, known?: KnownConfiguration): HolderReads {
    return new HolderReads(holder, this, known);
  }
}

/** What one step reads of a sandbox and its user, each once: so what is concealed is what was sent. */
export class HolderReads {
  private readonly configurations = new Map<string | null, Promise<AgentConfiguration>>();
  private stored: Promise<StoredCredential[]> | undefined;
  private listed: Promise<KeptPlaceholders> | undefined;

  constructor(
    private readonly holder: Holder,
    private readonly reader: HolderReader,
    known?: KnownConfiguration,
  ) {
    if (known !== undefined) {
      this.configurations.set(known.profile, Promise.resolve(known.configuration));
    }
  }

  /** @throws SecretDecryptionError */
  async tokens(): Promise<StoredCredential[]> {
    return await (this.stored ??= this.reader.tokens.current(this.holder.userId));
  }

  async kept(): Promise<KeptPlaceholders> {
    return await (this.listed ??= this.reader.placeholders
      .list(this.holder.sandboxId)
      .then((known) => ({ known, isInUse: known.length > 0 })));
  }

  /** Of tool servers as the user has them now, and of the search. @throws SecretDecryptionError */
  async tools(): Promise<ToolCredential[]> {
    const { inputs, secrets, config } = this.reader;
    // They are the same with each profile.
    const [profile = null] = this.configurations.keys();
    const configuration = await this.configuration(profile);
    const { settings, mcpConfig } = inputs.withDefaults(configuration, { model: null, isOurs: true });
    const named = new Set(referencedSecrets(mcpConfig));
    const found =
      named.size === 0
        ? new Map<string, AgentSecret>()
        : await secrets.forUser(
            this.holder.userId,
            // The one of Keycloak would have to be asked for.
            (await this.tokens()).filter(({ provider }) => provider !== 'enterprise_sso'),
            (name) => named.has(name),
            withoutHosts,
          );
    return [
      ...toolCredentials(mcpServerEntries(mcpConfig && withSecrets(mcpConfig, found))),
      ...searchCredential(config.agent.tavilyApiUrl, settings.search_api_key),
    ].filter(({ value }) => value.length >= MIN_LENGTH);
  }

  /** As agents are given it: of the settings where the profile is gone. @throws SecretDecryptionError */
  async modelKey({ profile, model, stock }: ModelSource): Promise<ModelKey | null> {
    const configuration = await this.configuration(profile);
    const { settings } = this.reader.inputs.withDefaults(configuration, { model, isOurs: stock !== true });
    const { llm_api_key: value, llm_base_url: baseUrl, llm_model: named } = settings;
    const used = model ?? named ?? '';
    const hosts = (stock ? stockModelPlaces : modelPlaces)(used, baseUrl);
    return value === null ? null : { value, hosts, model: used, baseUrl };
  }

  /** @throws SecretDecryptionError */
  async agentKeys(agent: AcpAgent, profile: string | null): Promise<FoundAgentKey[]> {
    const configuration = await this.configuration(profile);
    return await this.reader.agents.read(this.holder.userId, agent, configuration);
  }

  private async configuration(profile: string | null): Promise<AgentConfiguration> {
    const read =
      this.configurations.get(profile) ?? this.reader.inputs.readConfiguration(this.holder.userId, profile);
    this.configurations.set(profile, read);
    return await read;
  }
}
