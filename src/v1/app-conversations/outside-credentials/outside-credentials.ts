import { Injectable } from '@nestjs/common';
import type { EgressInjection, InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { parseJson } from '@slipway/common/json-access.js';
import { Clock } from '../../../common/clock.js';
import { AppConfig } from '../../../config/app-config.js';
import { PROVIDER_TYPES } from '../../../git-providers/git-provider.js';
import { TokenRenewals } from '../../../git-providers/tokens/token-renewals.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import { referencedSecrets, withSecrets } from '../../../settings/mcp/secret-references.js';
import {
  type AgentSecret,
  AgentSecretsReader,
  inClear,
  type SecretFilter,
  type SecretShown,
} from '../../../settings/secrets/agent-secrets.reader.js';
import type { ClearSecret } from '../../../settings/secrets/custom-secret.repository.js';
import {
  AgentInputsReader,
  mcpServerEntries,
  type WorkRepository,
} from '../agent-request/agent-inputs.reader.js';
import { isAcpName } from '../agent-request/acp-agents.js';
import { agentNotes } from './agent-keys.js';
import { AgentKeysReader, type FoundAgentKey, withoutHosts } from './agent-keys.reader.js';
import {
  type Concealed,
  Concealer,
  type CredentialSource,
  type Keep,
  type KeyUse,
  type ModelSource,
  sourceSchema,
} from './concealer.js';
import {
  MODEL_HEADERS,
  MODEL_MEMBERS,
  modelPlaces,
  secretPlaces,
  stockModelPlaces,
  stockNote,
} from './credential-places.js';
import { GitInjections } from './git-injections.js';
import { newPlaceholder } from './placeholder.js';
import { PlaceholderRepository } from './placeholder.repository.js';
import {
  currentTool,
  searchCredential,
  type ToolCredential,
  toolCredentials,
  toolInjection,
} from './tool-credentials.js';

type Holder = Pick<RunningSandbox, 'sandboxId' | 'userId' | 'hasCredentialsOutside'>;

/** For how long a proxy may go on with an answer, in seconds. */
export const OUTSIDE_MAX_AGE_SECONDS = 2;
/** By then every proxy has asked again. */
const TOLD_AGAIN_MS = 1_000 * (OUTSIDE_MAX_AGE_SECONDS + 1);
/** Shorter ones would be found in any text. */
const MIN_LENGTH = 8;

/**
 * Credentials that stay outside of sandboxes: keys of models and of agents of others, git tokens, keys of tool servers and of the
 * search, secrets with hosts.
 */
@Injectable()
export class OutsideCredentials {
  constructor(
    private readonly placeholders: PlaceholderRepository,
    private readonly tokens: TokenRenewals,
    private readonly inputs: AgentInputsReader,
    private readonly secrets: AgentSecretsReader,
    private readonly config: AppConfig,
    private readonly git: GitInjections,
    private readonly agents: AgentKeysReader,
    private readonly clock: Clock,
  ) {}

  /**
   * Conceals nothing where credentials are inside, and of an agent whose program uses no proxy nothing but git tokens.
   * @param use whose keys are sent; null: none are
   * @param others whose keys may be sent under other names
   * @param given by which it keeps placeholders; by default, of its own
   * @throws SecretDecryptionError
   */
  async concealer(
    holder: Holder,
    use: KeyUse | null = null,
    others: readonly KeyUse[] = [],
    given?: Keep,
  ): Promise<Concealer> {
    const { userId, hasCredentialsOutside } = holder;
    const keep = given ?? (await this.keeper(holder));
    if (!hasCredentialsOutside) {
      return new Concealer([], keep);
    }
    const tokens = await this.tokens.current(userId);
    const git = PROVIDER_TYPES.flatMap((provider): Concealed[] => {
      const value = this.git.ownToken(tokens, provider)?.value;
      return value === undefined ? [] : [{ source: { kind: 'git', provider }, value }];
    });
    const [keys, otherKeys] = await Promise.all([
      use === null ? [] : this.keysOf(userId, use),
      Promise.all(others.map(async (other) => await this.keysOf(userId, other))),
    ]);
    return new Concealer(
      [...keys, ...git, ...otherKeys.flat()].filter(({ value }) => value.length >= MIN_LENGTH),
      keep,
      this.agents.isInside(use?.agent) ? undefined : async () => await this.tools(userId),
      (text) => this.git.issuedIn(text),
    );
  }

  private async keysOf(userId: string, use: KeyUse): Promise<Concealed[]> {
    const { agent, profile, model, stock } = use;
    const entry = this.agents.find(agent);
    if (isAcpName(agent)) {
      const [keys, tools] =
        entry?.credentials !== null
          ? [[], []]
          : await Promise.all([this.agents.read(userId, entry, profile), this.tools(userId)]);
      const own = keys.filter(goesOut).map(({ name, value }): Concealed => {
        return { source: { kind: 'agent', agent, name, profile }, value };
      });
      // A variable of its own may have the key of the search.
      return [...own, ...tools.filter(({ source }) => source.server === null)];
    }
    const source = { profile, model, ...(stock && { stock }) };
    const key = await this.modelKey(userId, source);
    return key === null || key.hosts === null
      ? []
      : [{ source: { kind: 'model', ...source }, value: key.value }];
  }

  /**
   * Which keys of a conversation are in its sandbox in clear, though credentials stay outside: a sentence each.
   * @throws SecretDecryptionError
   */
  async clearNotes({ userId, hasCredentialsOutside }: Holder, use: KeyUse): Promise<string[]> {
    const entry = this.agents.find(use.agent);
    if (!hasCredentialsOutside) {
      return [];
    }
    if (entry !== null) {
      return agentNotes(entry, await this.agents.read(userId, entry, use.profile));
    }
    const key = use.stock ? await this.modelKey(userId, use) : null;
    return key !== null && key.hosts === null && !key.baseUrl ? [stockNote(key.model)] : [];
  }

  private async keeper({ sandboxId, hasCredentialsOutside }: Holder): Promise<Keep> {
    const known = hasCredentialsOutside ? await this.placeholders.list(sandboxId) : [];
    const isInUse = known.length > 0;
    return async ({ source, value, placeholder: chosen }, repositories) => {
      const wanted = {
        source: JSON.stringify(source),
        addresses: this.git.addressesOf(source, repositories),
      };
      const existing = known.findLast((each) => each.source === wanted.source);
      if (existing && wanted.addresses.every((address) => existing.addresses.includes(address))) {
        return existing.placeholder;
      }
      // The one of another credential here would be ambiguous.
      const isChosen = chosen !== undefined && known.every((each) => each.placeholder !== chosen);
      const added = {
        sandboxId,
        ...wanted,
        placeholder: isChosen ? chosen : newPlaceholder(value),
        isChosen,
      };
      const placeholder = await this.placeholders.keep(added);
      const addresses = [...(existing?.addresses ?? []), ...wanted.addresses];
      known.push({ ...added, addresses, placeholder });
      if (isInUse) {
        // Programs may be at work there, and the proxy goes on by what it was told before.
        await this.clock.wait(TOLD_AGAIN_MS);
      }
      return placeholder;
    };
  }

  /** What a sandbox is given of each of its user's secrets: a placeholder of one that has hosts. */
  async shownSecrets(holder: Holder, agent?: string | null, given?: Keep): Promise<SecretShown> {
    if (!holder.hasCredentialsOutside || this.agents.isInside(agent)) {
      return inClear;
    }
    const keep = given ?? (await this.keeper(holder));
    return async ({ name, value, injection, phase }) =>
      injection === null
        ? value
        : await keep(
            { source: secretSource({ name, phase }), value, placeholder: injection.placeholder },
            [],
          );
  }

  /**
   * For what programs in a sandbox ask for: also of models whose keys it has placeholders of.
   * @throws SecretDecryptionError
   */
  async concealerForPrograms(holder: Holder): Promise<Concealer> {
    const known = holder.hasCredentialsOutside ? await this.placeholders.list(holder.sandboxId) : [];
    const uses = known.flatMap(({ source: text }): KeyUse[] => {
      const source = sourceOf(text);
      switch (source.kind) {
        case 'model':
          return [source];
        case 'agent':
          return [{ agent: source.agent, profile: source.profile, model: null }];
        default:
          return [];
      }
    });
    return await this.concealer(holder, null, uses);
  }

  /** Before the first request leaves a sandbox, so that none is sent by what a proxy was told without them. */
  async prepare(
    holder: Holder,
    use: KeyUse,
    isVisible: SecretFilter = () => false,
    work: WorkRepository | null = null,
  ): Promise<void> {
    if (holder.hasCredentialsOutside) {
      const keep = await this.keeper(holder);
      const [concealer, shown, secrets] = await Promise.all([
        this.concealer(holder, use, [], keep),
        this.shownSecrets(holder, use.agent, keep),
        this.secrets.outside(holder.userId),
      ]);
      const visible = secrets.filter(({ name, phase }) => phase === null && isVisible(name, false));
      const { sandboxId, userId } = holder;
      const stored = await this.tokens.current(userId);
      const issuing = this.git.installationToken({ sandboxId, userId, stored }, work);
      const [tools] = await Promise.all([
        concealer.all(),
        issuing.then(async (token) => await concealer.text(token)),
        ...visible.map(shown),
      ]);
      if (!this.agents.isInside(use.agent)) {
        const sources = tools.map(({ source }) => JSON.stringify(source));
        await this.placeholders.forgetTools(holder.sandboxId, sources);
      }
    }
  }

  /** From here on nothing is put in for secrets of a setup. Waits until every proxy knows that, where there were some. Repeatable. */
  async endSetup({ sandboxId, hasCredentialsOutside }: Holder): Promise<void> {
    if (hasCredentialsOutside && (await this.placeholders.forgetSetup(sandboxId))) {
      await this.clock.wait(TOLD_AGAIN_MS);
    }
  }

  /** What the proxy puts in for a sandbox, and where the operator's agents call their models there. @throws SecretDecryptionError */
  async injections({ sandboxId, userId }: Omit<Holder, 'hasCredentialsOutside'>): Promise<{
    injections: EgressInjection[];
    agentPlaces: InjectionPlace[];
  }> {
    const rows = await this.placeholders.list(sandboxId);
    const kept = rows.map(({ placeholder, addresses, source }) => ({
      placeholder,
      addresses,
      source: sourceOf(source),
    }));
    const has = (kind: CredentialSource['kind']): boolean => kept.some(({ source }) => source.kind === kind);
    const [tokens, secrets, tools] = await Promise.all([
      has('git') ? this.tokens.current(userId) : [],
      has('secret') ? this.secrets.outside(userId) : [],
      has('tool') ? this.tools(userId) : [],
    ]);
    const all = kept.map(async ({ source, placeholder, addresses }): Promise<EgressInjection[]> => {
      switch (source.kind) {
        case 'model':
          return await this.modelInjection(userId, placeholder, source);
        case 'agent':
          return await this.agentInjection(userId, placeholder, source);
        case 'git':
          return await this.git.of({ sandboxId, userId, stored: tokens }, { source, placeholder, addresses });
        case 'secret':
          return secretInjection(
            placeholder,
            secrets.find(({ name, phase }) => name === source.name && phase === (source.phase ?? null)),
          );
        case 'tool':
          return toolInjection(placeholder, currentTool(tools, source));
      }
    });
    const found = await Promise.all(all);
    const ofAgents = found.filter((_each, index) => kept[index]?.source.kind === 'agent').flat();
    return { injections: found.flat(), agentPlaces: ofAgents.flatMap(({ hosts }) => hosts) };
  }

  private async modelInjection(
    userId: string,
    placeholder: string,
    source: ModelSource,
  ): Promise<EgressInjection[]> {
    const key = await this.modelKey(userId, source);
    if (key === null || key.hosts === null || key.hosts.length === 0) {
      return [];
    }
    const { value, hosts, model } = key;
    return [{ placeholder, value, hosts, model, headers: MODEL_HEADERS, query: MODEL_MEMBERS }];
  }

  private async agentInjection(
    userId: string,
    placeholder: string,
    { agent, name, profile }: Extract<CredentialSource, { kind: 'agent' }>,
  ): Promise<EgressInjection[]> {
    const entry = this.agents.find(agent);
    const keys = entry?.credentials === null ? await this.agents.read(userId, entry, profile) : [];
    return keys
      .filter((key) => key.name === name)
      .filter(goesOut)
      .map(({ value, places }) => ({
        placeholder,
        value,
        hosts: places,
        headers: MODEL_HEADERS,
        query: MODEL_MEMBERS,
      }));
  }

  /** Of tool servers as the user has them now, and of the search. @throws SecretDecryptionError */
  private async tools(userId: string): Promise<ToolCredential[]> {
    const configuration = await this.inputs.readConfiguration(userId, null);
    const { settings, mcpConfig } = this.inputs.withDefaults(configuration, { model: null, isOurs: true });
    const named = new Set(referencedSecrets(mcpConfig));
    // The one of Keycloak would have to be asked for.
    const tokens = (await this.tokens.current(userId)).filter(
      ({ provider }) => provider !== 'enterprise_sso',
    );
    const secrets =
      named.size === 0
        ? new Map<string, AgentSecret>()
        : await this.secrets.forUser(userId, tokens, (name) => named.has(name), withoutHosts);
    return [
      ...toolCredentials(mcpServerEntries(mcpConfig && withSecrets(mcpConfig, secrets))),
      ...searchCredential(this.config.agent.tavilyApiUrl, settings.search_api_key),
    ].filter(({ value }) => value.length >= MIN_LENGTH);
  }

  /** As agents are given it: of the settings where the profile is gone. Null hosts: it stays in the sandbox. */
  private async modelKey(
    userId: string,
    { profile, model, stock }: ModelSource,
  ): Promise<{
    value: string;
    hosts: InjectionPlace[] | null;
    model: string;
    baseUrl: string | null;
  } | null> {
    const configuration = await this.inputs.readConfiguration(userId, profile);
    const { settings } = this.inputs.withDefaults(configuration, { model, isOurs: stock !== true });
    const { llm_api_key: value, llm_base_url: baseUrl, llm_model: named } = settings;
    const used = model ?? named ?? '';
    const hosts = (stock ? stockModelPlaces : modelPlaces)(used, baseUrl);
    return value === null ? null : { value, hosts, model: used, baseUrl };
  }
}

function goesOut<T extends FoundAgentKey>(key: T): key is T & { places: NonNullable<T['places']> } {
  return key.places !== null && key.places.length > 0;
}

function secretSource({ name, phase }: Pick<ClearSecret, 'name' | 'phase'>): CredentialSource {
  return { kind: 'secret', name, ...(phase !== null && { phase }) };
}

function secretInjection(placeholder: string, secret: ClearSecret | undefined): EgressInjection[] {
  const { value, injection = null } = secret ?? {};
  if (value === undefined || injection === null) {
    return [];
  }
  const { header, format } = injection.inject;
  const hosts = secretPlaces(injection);
  return [{ placeholder, value, hosts, headers: [header.toLowerCase()], format }];
}

function sourceOf(text: string): CredentialSource {
  return sourceSchema.parse(parseJson(text));
}
