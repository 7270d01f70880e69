import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { EgressInjection } from '@slipway/egress-proxy/protocol.js';
import type {
  CredentialsRequest,
  StartConversationRequest,
} from '@slipway/agent-protocol/conversation-api.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { parseJson } from '@slipway/common/json-access.js';
import { AppConfig } from '../../../config/app-config.js';
import { PROVIDER_TYPES, type ProviderType } from '../../../git-providers/git-provider.js';
import { gitHostBaseUrl } from '../../../git-providers/provider-http.js';
import {
  ProviderTokenRepository,
  type StoredCredential,
} from '../../../git-providers/tokens/provider-token.repository.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import { AgentInputsReader } from '../agent-request/agent-inputs.reader.js';
import {
  GIT_HEADERS,
  MODEL_HEADERS,
  MODEL_MEMBERS,
  modelPlaces,
  repositoryPlaces,
} from './credential-places.js';
import { newPlaceholder } from './placeholder.js';
import { PlaceholderRepository, type SandboxPlaceholder } from './placeholder.repository.js';

const modelSourceSchema = z.object({
  kind: z.literal('model'),
  /** Of the profile; null: of the settings. */
  profile: z.string().nullable(),
  /** That the conversation names itself. */
  model: z.string().nullable(),
});
const sourceSchema = z.discriminatedUnion('kind', [
  modelSourceSchema,
  z.object({ kind: z.literal('git'), provider: z.enum(PROVIDER_TYPES) }),
]);
/** Where a value is found whenever it is needed, so that a changed one counts at once. */
type CredentialSource = z.infer<typeof sourceSchema>;
export type ModelSource = Omit<z.infer<typeof modelSourceSchema>, 'kind'>;

type Holder = Pick<RunningSandbox, 'sandboxId' | 'userId' | 'hasCredentialsOutside'>;

type Secrets = NonNullable<StartConversationRequest['secrets']>;
type GivenGitAccess = NonNullable<CredentialsRequest['git']>;

interface Concealed {
  source: CredentialSource;
  value: string;
}

type Keep = (credential: Concealed, repositories: readonly string[]) => Promise<string>;

/** For how long a proxy may go on with an answer, in seconds. */
export const OUTSIDE_MAX_AGE_SECONDS = 2;
/** By then every proxy has asked again. */
const TOLD_AGAIN_MS = 1_000 * (OUTSIDE_MAX_AGE_SECONDS + 1);
/** Shorter ones would be found in any text. */
const MIN_LENGTH = 8;

/** Puts placeholders in the place of credentials in what a sandbox is sent. */
export class Concealer {
  readonly #concealed: readonly Concealed[];

  constructor(
    concealed: readonly Concealed[],
    private readonly keep: Keep,
  ) {
    // One within another would leave the rest of that in clear.
    this.#concealed = concealed.toSorted((one, other) => other.value.length - one.value.length);
  }

  /** @param repositories addresses of those that a git token in it is for */
  async text<T extends string | null | undefined>(
    text: T,
    repositories: readonly string[] = [],
  ): Promise<string | T> {
    let shown: string | T = text;
    for (const credential of this.#concealed) {
      if (shown?.includes(credential.value) === true) {
        const placeholder = await this.keep(credential, repositories);
        shown = shown.replaceAll(credential.value, () => placeholder);
      }
    }
    return shown;
  }

  /** Has a placeholder for each. */
  async all(): Promise<void> {
    await Promise.all(this.#concealed.map((credential) => this.keep(credential, [])));
  }

  async start(request: StartConversationRequest): Promise<StartConversationRequest> {
    const { agent, secrets, slipway } = request;
    return {
      ...request,
      agent: { ...agent, llm: { ...agent.llm, api_key: await this.text(agent.llm.api_key) } },
      ...(secrets && { secrets: await this.secrets(secrets) }),
      ...(slipway && { slipway: { ...slipway, ...(slipway.git && { git: await this.git(slipway.git) }) } }),
    };
  }

  async update(request: CredentialsRequest): Promise<CredentialsRequest> {
    const { llm_api_key: key, secrets, git } = request;
    return {
      ...request,
      ...(key && { llm_api_key: await this.text(key) }),
      ...(secrets && { secrets: await this.secrets(secrets) }),
      ...(git && { git: await this.git(git) }),
    };
  }

  private async secrets(secrets: Secrets): Promise<Secrets> {
    const shown: [string, Secrets[string]][] = [];
    for (const [name, secret] of Object.entries(secrets)) {
      if (typeof secret === 'string') {
        shown.push([name, await this.text(secret)]);
      } else {
        const isClear = 'value' in secret;
        shown.push([name, isClear ? { ...secret, value: await this.text(secret.value) } : secret]);
      }
    }
    return Object.fromEntries(shown);
  }

  private async git(access: GivenGitAccess): Promise<GivenGitAccess> {
    const credentials: GivenGitAccess['credentials'] = [];
    // A model's key may be the same text, as at GitHub Models, and goes elsewhere.
    const tokens = new Concealer(
      this.#concealed.filter(({ source }) => source.kind === 'git'),
      this.keep,
    );
    for (const credential of access.credentials) {
      const { password, repository } = credential;
      const repositories = repository === undefined ? [] : [repository];
      const shown = await this.text(await tokens.text(password, repositories));
      credentials.push({ ...credential, password: shown });
    }
    return { ...access, credentials };
  }
}

/** Credentials that stay outside of sandboxes (`SANDBOX_CREDENTIALS=outside`): the model's key, and git tokens. */
@Injectable()
export class OutsideCredentials {
  constructor(
    private readonly placeholders: PlaceholderRepository,
    private readonly tokens: ProviderTokenRepository,
    private readonly inputs: AgentInputsReader,
    private readonly config: AppConfig,
  ) {}

  /**
   * Conceals nothing where credentials are inside.
   * @param model whose key is sent; null: none is
   * @param others whose keys may be sent under other names
   * @throws SecretDecryptionError
   */
  async concealer(
    holder: Holder,
    model: ModelSource | null = null,
    others: readonly ModelSource[] = [],
  ): Promise<Concealer> {
    const { sandboxId, userId, hasCredentialsOutside } = holder;
    const sources: CredentialSource[] = hasCredentialsOutside
      ? [
          ...(model ? [{ kind: 'model' as const, ...model }] : []),
          ...PROVIDER_TYPES.map((provider) => ({ kind: 'git' as const, provider })),
          ...others.map((other) => ({ kind: 'model' as const, ...other })),
        ]
      : [];
    const tokens = hasCredentialsOutside ? await this.tokens.list(userId) : [];
    const finding = sources.map(async (source) => {
      const found =
        source.kind === 'git' ? this.gitToken(tokens, source.provider) : await this.modelKey(userId, source);
      return found !== null && found.value.length >= MIN_LENGTH ? [{ source, value: found.value }] : [];
    });
    const known = hasCredentialsOutside ? await this.placeholders.list(sandboxId) : [];
    const isInUse = known.length > 0;
    const keep: Keep = async ({ source, value }, repositories) => {
      const wanted = { source: JSON.stringify(source), addresses: source.kind === 'git' ? repositories : [] };
      const existing = known.findLast((each) => each.source === wanted.source);
      if (existing && wanted.addresses.every((address) => existing.addresses.includes(address))) {
        return existing.placeholder;
      }
      const added = { sandboxId, ...wanted, placeholder: newPlaceholder(value), isChosen: false };
      const placeholder = await this.placeholders.keep(added);
      const addresses = [...(existing?.addresses ?? []), ...wanted.addresses];
      known.push({ ...added, addresses, placeholder });
      if (isInUse) {
        // Programs may be at work there, and the proxy goes on by what it was told before.
        await delay(TOLD_AGAIN_MS);
      }
      return placeholder;
    };
    return new Concealer((await Promise.all(finding)).flat(), keep);
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
  async prepare(holder: Holder, model: ModelSource): Promise<void> {
    const concealer = await this.concealer(holder, model);
    await concealer.all();
  }

  /** What the proxy puts in for a sandbox. @throws SecretDecryptionError */
  async injections({ sandboxId, userId }: Omit<Holder, 'hasCredentialsOutside'>): Promise<EgressInjection[]> {
    const kept = await this.placeholders.list(sandboxId);
    const tokens = kept.length === 0 ? [] : await this.tokens.list(userId);
    return (await Promise.all(kept.map((each) => this.injection(userId, tokens, each)))).flat();
  }

  private async injection(
    userId: string,
    tokens: readonly StoredCredential[],
    { source: text, placeholder, addresses }: SandboxPlaceholder,
  ): Promise<EgressInjection[]> {
    const source = sourceOf(text);
    if (source.kind === 'model') {
      const key = await this.modelKey(userId, source);
      return key === null || key.hosts.length === 0
        ? []
        : [{ placeholder, ...key, headers: MODEL_HEADERS, query: MODEL_MEMBERS }];
    }
    const token = this.gitToken(tokens, source.provider);
    // The user may have had a token for another host before.
    const hosts = addresses
      .filter((address) => token !== null && address.startsWith(`${token.root}/`))
      .flatMap((address) => repositoryPlaces(source.provider, address, this.config.git.servers));
    return token === null || hosts.length === 0
      ? []
      : [{ placeholder, value: token.value, hosts, headers: GIT_HEADERS }];
  }

  /** As agents are given it: of the settings where the profile is gone. */
  private async modelKey(
    userId: string,
    { profile, model }: ModelSource,
  ): Promise<{ value: string; hosts: EgressInjection['hosts'] } | null> {
    const configuration = await this.inputs.readConfiguration(userId, profile);
    const { settings } = this.inputs.withDefaults(configuration, { model, isOurs: true });
    const { llm_api_key: value, llm_base_url: baseUrl, llm_model: named } = settings;
    const hosts = modelPlaces(model ?? named ?? '', baseUrl);
    return value === null || hosts === null ? null : { value, hosts };
  }

  /** The token of Keycloak stands for another one, which is asked for; Bitbucket's may have an address before it. */
  private gitToken(
    tokens: readonly StoredCredential[],
    provider: ProviderType,
  ): { value: string; root: string } | null {
    const stored = tokens.find((each) => each.provider === provider);
    if (stored === undefined || stored.provider === 'enterprise_sso') {
      return null;
    }
    const { host, token } = stored;
    const root = host === null ? this.config.git.servers[stored.provider].cloneUrl : gitHostBaseUrl(host);
    // The sandbox's own loopback is reached without the proxy.
    return isLoopbackHost(URL.parse(root)?.hostname ?? '')
      ? null
      : { value: token.slice(token.indexOf(':') + 1), root };
  }
}

function sourceOf(text: string): CredentialSource {
  return sourceSchema.parse(parseJson(text));
}
