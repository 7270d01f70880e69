import type { McpServer, McpServers } from '@slipway/agent-protocol/conversation-api.js';
import type { GitAccess } from '@slipway/agent-protocol/git.js';
import type {
  CredentialsUpdate,
  ModelParameters,
  ParsedMcpServers,
  ParsedSecret,
  CreateConversationRequest,
} from '@slipway/agent-protocol/conversation-schemas.js';
import type { AcpLaunch } from '../engine/agent-engine.js';
import { gitSecrets } from '../git/run-git.js';
import type { ConversationRecord } from './conversation-record.js';
import { boundedText } from '../clipped-text.js';
import { errorName, log } from '../observability.js';

export const KEY_WITHHELD = 'LlmKeyWithheld';

/**
 * A conversation's secrets and the addresses that they are sent to, in memory only: after a restart clients must
 * give both again. `language-model.ts` is the only place that uses the LLM key.
 */
export interface Credentials {
  /** The model to call; null until a client names it after a start of the server. */
  model: ModelAddress | null;
  llmApiKey: string | null;
  /** How the model is called; its headers and body may hold secrets. */
  llmParameters: ModelParameters;
  /** The client has a key, but for another server than the conversation's. */
  llmKeyWithheld: boolean;
  searchApiKey: string | null;
  /** The address that the search key is sent to; null means its provider. */
  tavilyApiUrl: string | null;
  outboundAllowlist: string[] | null;
  mcpServers: McpServers | null;
  secrets: Record<string, ParsedSecret>;
  git: GitAccess | null;
  /** May hold secrets; null until a client names it after a start of the server. */
  acp: AcpLaunch | null;
}

interface ModelAddress {
  name: string;
  /** Address of the API; null means the provider's own. */
  baseUrl: string | null;
}

export const NO_CREDENTIALS: Credentials = {
  model: null,
  llmApiKey: null,
  llmParameters: {},
  llmKeyWithheld: false,
  searchApiKey: null,
  tavilyApiUrl: null,
  outboundAllowlist: null,
  mcpServers: null,
  secrets: {},
  git: null,
  acp: null,
};

/** The part of a request to start a conversation that a conversation takes anew at any time. */
export function credentialsOf({ agent, slipway, secrets }: CreateConversationRequest): CredentialsUpdate {
  return {
    llm_model: agent.llm.model,
    llm_base_url: agent.llm.base_url ?? null,
    llm_api_key: agent.llm.api_key ?? undefined,
    llm_parameters: parametersOf(agent.llm),
    search_api_key: slipway.search_api_key ?? undefined,
    tavily_api_url: slipway.tavily_api_url,
    mcp_config: agent.mcp_config,
    secrets,
    git: slipway.git ?? undefined,
    language: slipway.language,
    outbound_allowlist: slipway.outbound_allowlist,
    acp: agent,
  };
}

/** A new address without a key drops the old key and parameters, because both belong to the old address. */
export function mergeCredentials(old: Credentials, update: CredentialsUpdate): Credentials {
  const model = mergeModel(old.model, update);
  const isSame = old.model?.name === model?.name && old.model?.baseUrl === model?.baseUrl;
  const oldKey = isSame ? old.llmApiKey : null;
  const tavilyApiUrl = update.tavily_api_url === undefined ? old.tavilyApiUrl : update.tavily_api_url;
  const oldSearchKey = tavilyApiUrl === old.tavilyApiUrl ? old.searchApiKey : null;
  return {
    model,
    llmApiKey: update.llm_api_key === undefined ? oldKey : update.llm_api_key,
    llmParameters: update.llm_parameters ?? (isSame ? old.llmParameters : {}),
    llmKeyWithheld: update.llm_key_withheld ?? (update.llm_api_key === undefined && old.llmKeyWithheld),
    searchApiKey: update.search_api_key === undefined ? oldSearchKey : update.search_api_key,
    tavilyApiUrl,
    outboundAllowlist:
      update.outbound_allowlist === undefined ? old.outboundAllowlist : update.outbound_allowlist,
    mcpServers: update.mcp_config ? readMcpServers(update.mcp_config.mcpServers) : old.mcpServers,
    secrets: { ...old.secrets, ...update.secrets },
    git: update.git === undefined ? old.git : update.git,
    acp: update.acp ? toAcpLaunch(update.acp) : old.acp,
  };
}

/** An address alone does not name a model: it has no effect unless a model is already known. */
function mergeModel(old: ModelAddress | null, update: CredentialsUpdate): ModelAddress | null {
  const name = update.llm_model ?? old?.name;
  const baseUrl = update.llm_base_url === undefined ? (old?.baseUrl ?? null) : update.llm_base_url;
  return name === undefined ? null : { name, baseUrl };
}

/** Every value to mask. The values of looked-up secrets are not among them. */
export function secretValues(credentials: Credentials): string[] {
  const { llmApiKey, llmParameters, searchApiKey, mcpServers, secrets, git } = credentials;
  const given = Object.values(secrets).flatMap((secret) =>
    secret.kind === 'LookupSecret' ? Object.values(secret.headers ?? {}) : [secret.value],
  );
  return [
    llmApiKey,
    ...secretParameters(llmParameters),
    searchApiKey,
    ...mcpSecretValues(mcpServers),
    ...given,
    ...gitSecrets(git?.credentials ?? []),
  ].filter((value) => value !== null);
}

/** The other members of `llm` have no effect as parameters; the key is kept elsewhere. */
export function parametersOf(
  llm: ModelParameters & { api_key?: string | null | undefined },
): ModelParameters {
  const { api_key: _, ...parameters } = llm;
  return parameters;
}

/** Headers that carry a key, whatever their value looks like. */
const SECRET_HEADER = /auth|key|token|secret|cookie|password/i;

/** The values to mask. Others name teams, regions or versions, which stand in many texts. */
export function secretParameters({ extra_headers: headers }: ModelParameters): string[] {
  return Object.entries(headers ?? {}).flatMap(([name, value]) =>
    SECRET_HEADER.test(name) ? withoutScheme(value) : [],
  );
}

/** The value of a header, and what is secret of it. */
function withoutScheme(value: string): string[] {
  return [value, value.replace(/^(Bearer|Basic|Token) /i, '')];
}

const DEFAULT_START_SECONDS = 90;
const DEFAULT_IDLE_SECONDS = 1_800;

function toAcpLaunch(agent: Partial<CreateConversationRequest['agent']>): AcpLaunch | null {
  const command = [...(agent.acp_command ?? []), ...(agent.acp_args ?? [])];
  return command.length === 0
    ? null
    : {
        command,
        environment: agent.acp_env ?? {},
        model: agent.acp_model || null,
        sessionMode: agent.acp_session_mode || null,
        authMethod: agent.acp_auth_method || null,
        startTimeoutMs: (agent.acp_startup_timeout ?? DEFAULT_START_SECONDS) * 1000,
        idleTimeoutMs: (agent.acp_prompt_timeout ?? DEFAULT_IDLE_SECONDS) * 1000,
      };
}

/** What to tell the user, if anything. The record's model does not count: clients name it after each start. */
export function missingCredentials(
  { id, kind, llmKeyNeeded }: Pick<ConversationRecord, 'id' | 'kind' | 'llmKeyNeeded'>,
  { model, llmApiKey, llmKeyWithheld, acp }: Credentials,
): string | null {
  if (kind === 'acp') {
    return acp === null
      ? `The agent's start command and its secrets are not kept across a restart: give them again with POST /api/conversations/${id}/credentials (acp, secrets).`
      : null;
  }
  if (model !== null && (!llmKeyNeeded || llmApiKey !== null)) {
    return null;
  }
  if (model === null || !llmKeyWithheld) {
    return (
      'The model, its address and its key are not kept across a restart: give them again with ' +
      `POST /api/conversations/${id}/credentials (llm_model, llm_base_url, llm_api_key).`
    );
  }
  return (
    `The settings name another model server than this conversation's (${model.name}${originNote(model.baseUrl)}), so their ` +
    'key is not sent there. Name that server in the settings again (llm_model, llm_base_url, llm_api_key) and ' +
    `send a message, give its key to the agent server with POST /api/conversations/${id}/credentials (llm_api_key), or ` +
    'start another conversation.'
  );
}

/** Only the origin: the rest of an address may be secret. */
function originNote(baseUrl: string | null): string {
  const url = URL.parse(baseUrl?.trim() ?? '');
  return url === null ? '' : ` at ${url.origin}`;
}

/** Skips entries with neither command nor URL; null if none are left. */
export function readMcpServers(entries: ParsedMcpServers | undefined): McpServers | null {
  const servers = Object.entries(entries ?? {}).flatMap(([name, entry]) => {
    const server = toServer(entry);
    return server === null ? [] : [[name, server] as const];
  });
  return servers.length === 0 ? null : Object.fromEntries(servers);
}

function toServer(entry: ParsedMcpServers[string]): McpServer | null {
  const tools = {
    ...(entry.tools && { tools: entry.tools }),
    ...(entry.start_timeout_seconds && { start_timeout_seconds: entry.start_timeout_seconds }),
  };
  if (entry.command !== undefined) {
    return { command: entry.command, args: entry.args ?? [], env: entry.env ?? {}, ...tools };
  }
  if (entry.url === undefined) {
    return null;
  }
  const authorization: Record<string, string> = entry.auth ? { Authorization: `Bearer ${entry.auth}` } : {};
  return {
    url: entry.url,
    transport: entry.transport === 'sse' ? 'sse' : 'http',
    headers: { ...authorization, ...entry.headers },
    ...tools,
  };
}

function mcpSecretValues(servers: McpServers | null): string[] {
  return Object.values(servers ?? {}).flatMap((server) =>
    'command' in server
      ? Object.values(server.env ?? {})
      : Object.values(server.headers ?? {}).flatMap(withoutScheme),
  );
}

const LOOKUP_TIMEOUT_MS = 10_000;
const MAX_SECRET_BYTES = 128 * 1024;

/** Looks a secret up in the settings of this server; null when the URL leads elsewhere. */
export type OwnSecret = (url: string, headers: Record<string, string>) => string | null;

/** A secret that cannot be fetched keeps its last value; without one, tools that need it fail with a reason. */
export async function lookUpSecrets(
  secrets: Record<string, ParsedSecret>,
  last: Record<string, string>,
  ownSecret: OwnSecret,
): Promise<Record<string, string>> {
  const found = await Promise.all(
    Object.entries(secrets).map(async ([name, secret]) => {
      if (secret.kind !== 'LookupSecret') {
        return [];
      }
      try {
        const headers = secret.headers ?? {};
        return [[name, ownSecret(secret.url, headers) ?? (await fetchSecret(secret.url, headers))] as const];
      } catch (error) {
        log('warn', 'failed to look up secret', { name, error: errorName(error) });
        // `last` has inherited members as well, such as `constructor`.
        const known = Object.hasOwn(last, name) ? last[name] : undefined;
        return known === undefined ? [] : [[name, known] as const];
      }
    }),
  );
  return Object.fromEntries(found.flat());
}

async function fetchSecret(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, {
    headers,
    // The headers hold a key for this address only.
    redirect: 'error',
    signal: AbortSignal.timeout(LOOKUP_TIMEOUT_MS),
  });
  if (!response.ok) {
    throw new Error('the secret was refused');
  }
  const text = await boundedText(response, MAX_SECRET_BYTES, 'the secret is too large');
  return response.headers.get('content-type')?.includes('json') ? jsonString(text) : text;
}

function jsonString(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'string') {
    throw new TypeError('the secret is not a string');
  }
  return value;
}
