import { z } from 'zod';
import type {
  CredentialsRequest,
  StartConversationRequest,
} from '@slipway/agent-protocol/conversation-api.js';
import { isJsonObject, jsonText, mapLeaves } from '@slipway/common/json-access.js';
import { PROVIDER_TYPES } from '@slipway/git-providers/git-provider.js';
import { concealedServer, type ToolCredential, toolSourceSchema } from './tool-credentials.js';

const modelSourceSchema = z.object({
  kind: z.literal('model'),
  /** Of the profile; null: of the settings. */
  profile: z.string().nullable(),
  /** That the conversation names itself. */
  model: z.string().nullable(),
  /** That a stock agent server calls, which knows addresses of its own. */
  stock: z.literal(true).optional(),
});
export const sourceSchema = z.discriminatedUnion('kind', [
  modelSourceSchema,
  z.object({
    kind: z.literal('git'),
    provider: z.enum(PROVIDER_TYPES),
    /** That an installation stands in for: its tokens are for one each. */
    repository: z.string().optional(),
  }),
  /** A key that the operator's list gives an agent: see `AgentKey`. */
  z.object({
    kind: z.literal('agent'),
    agent: z.string(),
    name: z.string(),
    profile: z.string().nullable(),
  }),
  z.object({ kind: z.literal('secret'), name: z.string(), phase: z.literal('setup').optional() }),
  toolSourceSchema,
]);
/** Where a value is found whenever it is needed, so that a changed one counts at once. */
export type CredentialSource = z.infer<typeof sourceSchema>;
export type ModelSource = Omit<z.infer<typeof modelSourceSchema>, 'kind'>;
/** Whose keys a conversation is given: of a model, or of an agent of the operator's list. */
export interface KeyUse extends ModelSource {
  agent?: string | null;
}

type Secrets = NonNullable<StartConversationRequest['secrets']>;
type Condenser = NonNullable<StartConversationRequest['agent']['condenser']>;
type Servers = NonNullable<CredentialsRequest['mcp_config']>;
type GivenGitAccess = NonNullable<CredentialsRequest['git']>;

export interface Concealed {
  source: CredentialSource;
  value: string;
  /** That the user chose for it. */
  placeholder?: string | undefined;
}

export type Keep = (credential: Concealed, repositories: readonly string[]) => Promise<string>;

/** Puts placeholders in the place of credentials in what a sandbox is sent. */
export class Concealer {
  private readonly concealed: readonly Concealed[];
  private toolEntries: Promise<readonly ToolCredential[]> | undefined;

  constructor(
    concealed: readonly Concealed[],
    private readonly keep: Keep,
    /** Those that the user has now. */
    private readonly tools: () => Promise<readonly ToolCredential[]> = async () => [],
    /** Others that a text has, found by what they are. */
    private readonly foundIn: (text: string) => readonly Concealed[] = () => [],
  ) {
    // One within another would leave the rest of that in clear.
    this.concealed = concealed.toSorted((one, other) => other.value.length - one.value.length);
  }

  /** @param repositories addresses of those that a git token in it is for */
  async text<T extends string | null | undefined>(
    text: T,
    repositories: readonly string[] = [],
  ): Promise<string | T> {
    let shown: string | T = text;
    for (const credential of [...this.foundIn(shown ?? ''), ...this.concealed]) {
      if (shown?.includes(credential.value) === true) {
        const placeholder = await this.keep(credential, repositories);
        shown = shown.replaceAll(credential.value, () => placeholder);
      }
    }
    return shown;
  }

  /** Each of them; those of tool servers last. */
  async all(): Promise<readonly Concealed[]> {
    return [...this.concealed, ...(await this.known())];
  }

  private known(): Promise<readonly ToolCredential[]> {
    return (this.toolEntries ??= this.tools());
  }

  async start(request: StartConversationRequest): Promise<StartConversationRequest> {
    const { agent, secrets, slipway } = request;
    const { mcp_config: servers, condenser, acp_env: variables } = agent;
    return {
      ...request,
      agent: {
        ...agent,
        llm: { ...agent.llm, api_key: await this.text(agent.llm.api_key) },
        ...(condenser && { condenser: await this.condenser(condenser) }),
        ...(variables && { acp_env: await this.texts(variables) }),
        ...(servers && { mcp_config: await this.servers(servers) }),
      },
      ...(secrets && { secrets: await this.secrets(secrets) }),
      ...(slipway && {
        slipway: {
          ...slipway,
          ...(slipway.git && { git: await this.git(slipway.git) }),
          ...(slipway.search_api_key && { search_api_key: await this.searchKey(slipway.search_api_key) }),
        },
      }),
    };
  }

  async update(request: CredentialsRequest): Promise<CredentialsRequest> {
    const { llm_api_key: key, secrets, git, mcp_config: servers, search_api_key: searchKey, acp } = request;
    return {
      ...request,
      ...(acp?.acp_env && { acp: { ...acp, acp_env: await this.texts(acp.acp_env) } }),
      ...(key && { llm_api_key: await this.text(key) }),
      ...(servers && { mcp_config: await this.servers(servers) }),
      ...(searchKey && { search_api_key: await this.searchKey(searchKey) }),
      ...(secrets && { secrets: await this.secrets(secrets) }),
      ...(git && { git: await this.git(git) }),
    };
  }

  /** A stock agent server is told of a model for it. */
  private async condenser(condenser: Condenser): Promise<Condenser> {
    const { llm } = condenser;
    return isJsonObject(llm)
      ? { ...condenser, llm: { ...llm, api_key: await this.text(jsonText(llm, 'api_key')) } }
      : condenser;
  }

  private async texts(texts: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const shown: [string, string][] = [];
    for (const [name, text] of Object.entries(texts)) {
      shown.push([name, await this.text(text)]);
    }
    return Object.fromEntries(shown);
  }

  private async servers(servers: Servers): Promise<Servers> {
    const known = Object.keys(servers).length === 0 ? [] : await this.known();
    const shown = async ({ source: { address, member }, value }: ToolCredential): Promise<string | null> => {
      const own = known.find(
        (each) => each.value === value && each.source.address === address && each.source.member === member,
      );
      return own === undefined ? null : await this.keep(own, []);
    };
    const all = Object.entries(servers).map(
      async ([name, server]) => [name, await concealedServer(name, server, shown)] as const,
    );
    return await this.withoutFound(Object.fromEntries(await Promise.all(all)));
  }

  /** What is found by what it is goes where it is for alone, whichever tool server names it. */
  private async withoutFound(servers: Servers): Promise<Servers> {
    const found = new Map<string, string>();
    for (const credential of this.foundIn(JSON.stringify(servers))) {
      found.set(credential.value, await this.keep(credential, []));
    }
    const shown = (text: string): string =>
      [...found].reduce((all, [value, placeholder]) => all.replaceAll(value, () => placeholder), text);
    return found.size === 0
      ? servers
      : (mapLeaves(servers, (_path, leaf) => (typeof leaf === 'string' ? shown(leaf) : leaf)) as Servers);
  }

  private async searchKey(key: string): Promise<string> {
    const own = (await this.known()).find(({ source, value }) => source.server === null && value === key);
    return own === undefined ? key : await this.keep(own, []);
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
      this.concealed.filter(({ source }) => source.kind === 'git'),
      this.keep,
      undefined,
      this.foundIn,
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
