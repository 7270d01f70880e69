import { Injectable } from '@nestjs/common';
import type { EgressInjection } from '@slipway/egress-proxy/protocol.js';
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
import { Concealer, type CredentialSource, type Keep, type ModelSource, sourceSchema } from './concealer.js';
import { MODEL_HEADERS, MODEL_MEMBERS, modelPlaces, secretPlaces } from './credential-places.js';
import { GitInjections } from './git-injections.js';
import { newPlaceholder } from './placeholder.js';
import { PlaceholderRepository } from './placeholder.repository.js';
import { searchCredential, type ToolCredential, toolCredentials } from './tool-credentials.js';

type Holder = Pick<RunningSandbox, 'sandboxId' | 'userId' | 'hasCredentialsOutside'>;

/** For how long a proxy may go on with an answer, in seconds. */
export const OUTSIDE_MAX_AGE_SECONDS = 2;
/** By then every proxy has asked again. */
const TOLD_AGAIN_MS = 1_000 * (OUTSIDE_MAX_AGE_SECONDS + 1);
/** Shorter ones would be found in any text. */
const MIN_LENGTH = 8;

/**
 * Credentials that stay outside of sandboxes (`SANDBOX_CREDENTIALS=outside`): the model's key, git tokens, keys of tool servers
 * and of the search, secrets with hosts.
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
    private readonly clock: Clock,
  ) {}

  /**
   * Conceals nothing where credentials are inside.
   * @param model whose key is sent; null: none is
   * @param others whose keys may be sent under other names
   * @param given by which it keeps placeholders; by default, of its own
   * @throws SecretDecryptionError
   */
  async concealer(
    holder: Holder,
    model: ModelSource | null = null,
    others: readonly ModelSource[] = [],
    given?: Keep,
  ): Promise<Concealer> {
    const { userId, hasCredentialsOutside } = holder;
    const sources: Extract<CredentialSource, { kind: 'model' | 'git' }>[] = hasCredentialsOutside
      ? [
          ...(model ? [{ kind: 'model' as const, ...model }] : []),
          ...PROVIDER_TYPES.map((provider) => ({ kind: 'git' as const, provider })),
          ...others.map((other) => ({ kind: 'model' as const, ...other })),
        ]
      : [];
    const tokens = hasCredentialsOutside ? await this.tokens.current(userId) : [];
    const finding = sources.map(async (source) => {
      const found =
        source.kind === 'git'
          ? this.git.ownToken(tokens, source.provider)
          : await this.modelKey(userId, source);
      return found !== null && found.value.length >= MIN_LENGTH ? [{ source, value: found.value }] : [];
    });
    const keep = given ?? (await this.keeper(holder));
    const concealed = (await Promise.all(finding)).flat();
    return hasCredentialsOutside
      ? new Concealer(
          concealed,
          keep,
          async () => await this.tools(userId),
          (text) => this.git.issuedIn(text),
        )
      : new Concealer(concealed, keep);
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
  async shownSecrets(holder: Holder, given?: Keep): Promise<SecretShown> {
    if (!holder.hasCredentialsOutside) {
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
    const models = known.flatMap(({ source: text }) => {
      const source = sourceOf(text);
      return source.kind === 'model' ? [{ profile: source.profile, model: source.model }] : [];
    });
    return await this.concealer(holder, null, models);
  }

  /** Before the first request leaves a sandbox, so that none is sent by what a proxy was told without them. */
  async prepare(
    holder: Holder,
    model: ModelSource,
    isVisible: SecretFilter = () => false,
    work: WorkRepository | null = null,
  ): Promise<void> {
    if (holder.hasCredentialsOutside) {
      const keep = await this.keeper(holder);
      const [concealer, shown, secrets] = await Promise.all([
        this.concealer(holder, model, [], keep),
        this.shownSecrets(holder, keep),
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
      const sources = tools.map(({ source }) => JSON.stringify(source));
      await this.placeholders.forgetTools(holder.sandboxId, sources);
    }
  }

  /** From here on nothing is put in for secrets of a setup. Waits until every proxy knows that, where there were some. Repeatable. */
  async endSetup({ sandboxId, hasCredentialsOutside }: Holder): Promise<void> {
    if (hasCredentialsOutside && (await this.placeholders.forgetSetup(sandboxId))) {
      await this.clock.wait(TOLD_AGAIN_MS);
    }
  }

  /** What the proxy puts in for a sandbox. @throws SecretDecryptionError */
  async injections({ sandboxId, userId }: Omit<Holder, 'hasCredentialsOutside'>): Promise<EgressInjection[]> {
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
    return (await Promise.all(all)).flat();
  }

  private async modelInjection(
    userId: string,
    placeholder: string,
    source: ModelSource,
  ): Promise<EgressInjection[]> {
    const key = await this.modelKey(userId, source);
    return key === null || key.hosts.length === 0
      ? []
      : [{ placeholder, ...key, headers: MODEL_HEADERS, query: MODEL_MEMBERS }];
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

  /** As agents are given it: of the settings where the profile is gone. */
  private async modelKey(
    userId: string,
    { profile, model }: ModelSource,
  ): Promise<Pick<EgressInjection, 'value' | 'hosts' | 'model'> | null> {
    const configuration = await this.inputs.readConfiguration(userId, profile);
    const { settings } = this.inputs.withDefaults(configuration, { model, isOurs: true });
    const { llm_api_key: value, llm_base_url: baseUrl, llm_model: named } = settings;
    const used = model ?? named ?? '';
    const hosts = modelPlaces(used, baseUrl);
    return value === null || hosts === null ? null : { value, hosts, model: used };
  }
}

/** One that has hosts goes there alone, whichever tool server names it. */
const withoutHosts: SecretShown = async ({ value, injection }) => (injection === null ? value : '');

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

/** A server without a name is called by its position, which may be another one now. */
function currentTool(
  tools: readonly ToolCredential[],
  { server, address, member }: ToolCredential['source'],
): ToolCredential | undefined {
  const same = tools.filter(
    ({ source }) =>
      source.address === address &&
      source.member === member &&
      (source.server === null) === (server === null),
  );
  return same.find(({ source }) => source.server === server) ?? same[0];
}

function toolInjection(placeholder: string, tool: ToolCredential | undefined): EgressInjection[] {
  if (tool === undefined) {
    return [];
  }
  const { source: _, ...injection } = tool;
  return [{ placeholder, ...injection }];
}

function sourceOf(text: string): CredentialSource {
  return sourceSchema.parse(parseJson(text));
}
