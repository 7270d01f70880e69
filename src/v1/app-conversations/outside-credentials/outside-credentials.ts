import { Injectable } from '@nestjs/common';
import type { EgressInjection, InjectionPlace } from '@slipway/egress-proxy/protocol.js';
import { parseJson } from '@slipway/common/json-access.js';
import { Clock } from '@slipway/common/clock.js';
import { PROVIDER_TYPES } from '@slipway/git-providers/git-provider.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import {
  AgentSecretsReader,
  inClear,
  type SecretFilter,
  type SecretShown,
} from '../../../settings/secrets/agent-secrets.reader.js';
import type { ClearSecret } from '../../../settings/secrets/custom-secret.repository.js';
import type { WorkRepository } from '../agent-request/agent-inputs.reader.js';
import { isAcpName } from '../agent-request/acp-agents.js';
import { agentNotes } from './agent-keys.js';
import { AgentKeysReader, type FoundAgentKey } from './agent-keys.reader.js';
import {
  type Concealed,
  Concealer,
  type CredentialSource,
  type Keep,
  type KeyUse,
  type ModelSource,
  sourceSchema,
} from '@slipway/egress-rules/concealer.js';
import {
  MODEL_HEADERS,
  MODEL_MEMBERS,
  secretPlaces,
  stockNote,
} from '@slipway/egress-rules/credential-places.js';
import { GitInjections } from './git-injections.js';
import { HolderReader, type HolderReads, MIN_LENGTH } from './holder-reads.js';
import { newPlaceholder } from '@slipway/egress-rules/placeholder.js';
import { type KeptPlaceholder, PlaceholderRepository } from './placeholder.repository.js';
import { currentTool, toolInjection } from '@slipway/egress-rules/tool-credentials.js';

type Holder = Pick<RunningSandbox, 'sandboxId' | 'userId' | 'hasCredentialsOutside'>;

/** For how long a proxy may go on with an answer, in seconds. */
export const OUTSIDE_MAX_AGE_SECONDS = 2;
/** By then every proxy has asked again. */
const TOLD_AGAIN_MS = 1_000 * (OUTSIDE_MAX_AGE_SECONDS + 1);

/**
 * Credentials that stay outside of sandboxes: keys of models and of agents of others, git tokens, keys of tool servers and of the
 * search, secrets with hosts.
 */
@Injectable()
export class OutsideCredentials {
  constructor(
    private readonly placeholders: PlaceholderRepository,
    private readonly reader: HolderReader,
    private readonly secrets: AgentSecretsReader,
    private readonly git: GitInjections,
    private readonly agents: AgentKeysReader,
    private readonly clock: Clock,
  ) {}

  /** For what one step sends to a sandbox. @param known the configuration that it sends */
  reads(...[holder, known]: Parameters<HolderReader['of']>): HolderReads {
    return this.reader.of(holder, known);
  }

  /**
   * Conceals nothing where credentials are inside, and of an agent whose program uses no proxy nothing but git tokens.
   * @param use whose keys are sent; null: none are
   * @param others whose keys may be sent under other names
   * @throws SecretDecryptionError
   */
  async concealer(
    holder: Holder,
    use: KeyUse | null = null,
    reads = this.reader.of(holder),
    others: readonly KeyUse[] = [],
  ): Promise<Concealer> {
    const keep = this.keeper(holder, reads);
    if (!holder.hasCredentialsOutside) {
      return new Concealer([], keep);
    }
    const [tokens, keys, ...otherKeys] = await Promise.all([
      reads.tokens(),
      use === null ? [] : this.keysOf(use, reads),
      ...others.map(async (other) => await this.keysOf(other, reads)),
    ]);
    const git = PROVIDER_TYPES.flatMap((provider): Concealed[] => {
      const value = this.git.ownToken(tokens, provider)?.value;
      return value === undefined ? [] : [{ source: { kind: 'git', provider }, value }];
    });
    return new Concealer(
      [...keys, ...git, ...otherKeys.flat()].filter(({ value }) => value.length >= MIN_LENGTH),
      keep,
      this.agents.isInside(use?.agent) ? undefined : async () => await reads.tools(),
      (text) => this.git.issuedIn(text),
    );
  }

  private async keysOf(use: KeyUse, reads: HolderReads): Promise<Concealed[]> {
    const { agent, profile, model, stock } = use;
    const entry = this.agents.find(agent);
    if (isAcpName(agent)) {
      const [keys, tools] =
        entry?.credentials !== null
          ? [[], []]
          : await Promise.all([reads.agentKeys(entry, profile), reads.tools()]);
      const own = keys.filter(goesOut).map(({ name, value }): Concealed => {
        return { source: { kind: 'agent', agent, name, profile }, value };
      });
      // A variable of its own may have the key of the search.
      return [...own, ...tools.filter(({ source }) => source.server === null)];
    }
    const source = { profile, model, ...(stock && { stock }) };
    const key = await reads.modelKey(source);
    return key === null || key.hosts === null
      ? []
      : [{ source: { kind: 'model', ...source }, value: key.value }];
  }

  /**
   * Which keys of a conversation are in its sandbox in clear, though credentials stay outside: a sentence each.
   * @throws SecretDecryptionError
   */
  async clearNotes({ hasCredentialsOutside }: Holder, use: KeyUse, reads: HolderReads): Promise<string[]> {
    const entry = this.agents.find(use.agent);
    if (!hasCredentialsOutside) {
      return [];
    }
    if (entry !== null) {
      return agentNotes(entry, await reads.agentKeys(entry, use.profile));
    }
    const key = use.stock ? await reads.modelKey(use) : null;
    return key !== null && key.hosts === null && !key.baseUrl ? [stockNote(key.model)] : [];
  }

  private keeper(holder: Holder, reads: HolderReads): Keep {
    return async (credential, repositories) => {
      const [placeholder = ''] = await this.keep(holder, reads, [credential], repositories);
      return placeholder;
    };
  }

  private async keep(
    { sandboxId }: Holder,
    reads: HolderReads,
    credentials: readonly Concealed[],
    repositories: readonly string[] = [],
  ): Promise<string[]> {
    const { known, isInUse } = await reads.kept();
    const find = (source: string): KeptPlaceholder | undefined =>
      known.findLast((each) => each.source === source);
    const sources = credentials.map(({ source }) => JSON.stringify(source));
    const wanted = credentials.flatMap(({ source, value, placeholder: chosen }, index) => {
      const [text = '', addresses] = [sources[index], this.git.addressesOf(source, repositories)];
      const { addresses: before } = find(text) ?? {};
      if (before && addresses.every((address) => before.includes(address))) {
        return [];
      }
      // The one of another credential here would be ambiguous.
      const isChosen = chosen !== undefined && known.every((each) => each.placeholder !== chosen);
      return [{ source: text, addresses, placeholder: isChosen ? chosen : newPlaceholder(value), isChosen }];
    });
    if (wanted.length > 0) {
      const all = [...new Map(wanted.map((each) => [each.source, each])).values()];
      for (const { source, placeholder } of await this.placeholders.keep(sandboxId, all)) {
        const added = all.find((each) => each.source === source)?.addresses ?? [];
        known.push({ source, placeholder, addresses: [...(find(source)?.addresses ?? []), ...added] });
      }
      if (isInUse) {
        // Programs may be at work there, and the proxy goes on by what it was told before.
        await this.clock.wait(TOLD_AGAIN_MS);
      }
    }
    return sources.map((source) => find(source)?.placeholder ?? '');
  }

  /** What a sandbox is given of each of its user's secrets: a placeholder of one that has hosts. */
  shownSecrets(holder: Holder, agent?: string | null, reads = this.reader.of(holder)): SecretShown {
    if (!holder.hasCredentialsOutside || this.agents.isInside(agent)) {
      return inClear;
    }
    const keep = this.keeper(holder, reads);
    return async (secret) => {
      const [concealed] = concealedSecret(secret);
      return concealed === undefined ? secret.value : await keep(concealed, []);
    };
  }

  /**
   * For what programs in a sandbox ask for: also of models whose keys it has placeholders of.
   * @throws SecretDecryptionError
   */
  async concealerForPrograms(holder: Holder): Promise<Concealer> {
    const reads = this.reader.of(holder);
    const { known } = holder.hasCredentialsOutside ? await reads.kept() : { known: [] };
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
    return await this.concealer(holder, null, reads, uses);
  }

  /** Before the first request leaves a sandbox, so that none is sent by what a proxy was told without them. @throws SecretDecryptionError */
  async prepare(
    holder: Holder,
    use: KeyUse,
    { isVisible = () => false, work = null }: { isVisible?: SecretFilter; work?: WorkRepository | null } = {},
    reads = this.reader.of(holder),
  ): Promise<void> {
    if (holder.hasCredentialsOutside) {
      const { sandboxId, userId } = holder;
      const [concealer, secrets, stored, { known }] = await Promise.all([
        this.concealer(holder, use, reads),
        this.secrets.outside(userId),
        reads.tokens(),
        reads.kept(),
      ]);
      const visible = secrets.filter(({ name, phase }) => phase === null && isVisible(name, false));
      const isInside = this.agents.isInside(use.agent);
      const all = [...(await concealer.all()), ...(isInside ? [] : visible.flatMap(concealedSecret))];
      await Promise.all([
        this.keep(holder, reads, all),
        this.git
          .installationToken({ sandboxId, userId, stored }, work)
          .then(async (token) => await concealer.text(token)),
      ]);
      const sources = all.map(({ source }) => JSON.stringify(source));
      const isGone = ({ source }: KeptPlaceholder): boolean =>
        sourceOf(source).kind === 'tool' && !sources.includes(source);
      if (!isInside && known.some(isGone)) {
        await this.placeholders.forgetTools(sandboxId, sources);
      }
    }
  }

  /** From here on nothing is put in for secrets of a setup. Waits until every proxy knows that, where there were some. Repeatable. */
  async endSetup(holder: Holder, reads = this.reader.of(holder)): Promise<void> {
    const { known } = holder.hasCredentialsOutside ? await reads.kept() : { known: [] };
    if (known.some(isOfSetup) && (await this.placeholders.forgetSetup(holder.sandboxId))) {
      await this.clock.wait(TOLD_AGAIN_MS);
    }
  }

  /** What the proxy puts in for a sandbox, and where the operator's agents call their models there. @throws SecretDecryptionError */
  async injections({ sandboxId, userId }: Omit<Holder, 'hasCredentialsOutside'>): Promise<{
    injections: EgressInjection[];
    agentPlaces: InjectionPlace[];
  }> {
    const reads = this.reader.of({ sandboxId, userId });
    const { known } = await reads.kept();
    const kept = known.map(({ placeholder, addresses, source }) => ({
      placeholder,
      addresses,
      source: sourceOf(source),
    }));
    const has = (kind: CredentialSource['kind']): boolean => kept.some(({ source }) => source.kind === kind);
    const [tokens, secrets, tools] = await Promise.all([
      has('git') ? reads.tokens() : [],
      has('secret') ? this.secrets.outside(userId) : [],
      has('tool') ? reads.tools() : [],
    ]);
    const all = kept.map(async ({ source, placeholder, addresses }): Promise<EgressInjection[]> => {
      switch (source.kind) {
        case 'model':
          return await this.modelInjection(reads, placeholder, source);
        case 'agent':
          return await this.agentInjection(reads, placeholder, source);
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
    reads: HolderReads,
    placeholder: string,
    source: ModelSource,
  ): Promise<EgressInjection[]> {
    const key = await reads.modelKey(source);
    if (key === null || key.hosts === null || key.hosts.length === 0) {
      return [];
    }
    const { value, hosts, model } = key;
    return [{ placeholder, value, hosts, model, headers: MODEL_HEADERS, query: MODEL_MEMBERS }];
  }

  private async agentInjection(
    reads: HolderReads,
    placeholder: string,
    { agent, name, profile }: Extract<CredentialSource, { kind: 'agent' }>,
  ): Promise<EgressInjection[]> {
    const entry = this.agents.find(agent);
    const keys = entry?.credentials === null ? await reads.agentKeys(entry, profile) : [];
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
}

function goesOut<T extends FoundAgentKey>(key: T): key is T & { places: NonNullable<T['places']> } {
  return key.places !== null && key.places.length > 0;
}

function isOfSetup({ source: text }: KeptPlaceholder): boolean {
  const source = sourceOf(text);
  return source.kind === 'secret' && source.phase === 'setup';
}

function concealedSecret({ name, value, injection, phase }: ClearSecret): Concealed[] {
  const source = { kind: 'secret' as const, name, ...(phase !== null && { phase }) };
  return injection === null ? [] : [{ source, value, placeholder: injection.placeholder }];
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
