import type { McpServer, McpServers } from '../../agent-protocol/conversation.js';
import type { GitAccess } from '../../agent-protocol/git.js';
import { gitSecrets } from '../git/run-git.js';
import { describeFailure, log } from '../log.js';
import type { ConversationRecord } from './conversation-record.js';
import type { CredentialsUpdate, ParsedMcpServers, ParsedSecret, StartRequest } from './schemas.js';

/** Tool servers as the engine starts them; null when there is none. An entry with neither command nor URL is none. */
function toMcpServers(entries: ParsedMcpServers | undefined): McpServers | null {
  const servers = Object.entries(entries ?? {}).flatMap(([name, entry]) => {
    const server = toServer(entry);
    return server === null ? [] : [[name, server] as const];
  });
  return servers.length === 0 ? null : Object.fromEntries(servers);
}

function toServer(entry: ParsedMcpServers[string]): McpServer | null {
  if (entry.command !== undefined) {
    return { command: entry.command, args: entry.args ?? [], env: entry.env ?? {} };
  }
  if (entry.url === undefined) {
    return null;
  }
  const authorization: Record<string, string> = entry.auth ? { Authorization: `Bearer ${entry.auth}` } : {};
  return {
    url: entry.url,
    transport: entry.transport === 'sse' ? 'sse' : 'http',
    headers: { ...authorization, ...entry.headers },
  };
}

/** Values in a configuration that are secrets: variables, headers. */
function mcpSecretValues(servers: McpServers | null): string[] {
  return Object.values(servers ?? {}).flatMap((server) => {
    if ('command' in server) {
      return Object.values(server.env ?? {});
    }
    return Object.values(server.headers ?? {}).flatMap((value) => [
      value,
      value.replace(/^(Bearer|Basic|Token) /i, ''),
    ]);
  });
}

/** What a conversation knows but never writes: after a restart it has to be given again. */
export interface Credentials {
  llmApiKey: string | null;
  /** Whoever gives credentials has a key only for another server than the conversation's. */
  llmKeyWithheld: boolean;
  searchApiKey: string | null;
  mcpServers: McpServers | null;
  secrets: Record<string, ParsedSecret>;
  git: GitAccess | null;
}

export const NO_CREDENTIALS: Credentials = {
  llmApiKey: null,
  llmKeyWithheld: false,
  searchApiKey: null,
  mcpServers: null,
  secrets: {},
  git: null,
};

/** The credentials inside a request that starts a conversation. */
export function credentialsOf(request: StartRequest): Credentials {
  return {
    llmApiKey: request.agent.llm.api_key ?? null,
    llmKeyWithheld: false,
    searchApiKey: request.slipway.search_api_key ?? null,
    mcpServers: toMcpServers(request.agent.mcp_config?.mcpServers),
    secrets: request.secrets,
    git: request.slipway.git ?? null,
  };
}

/** Replaces what was given; secrets one by one. */
export function updateCredentials(old: Credentials, update: CredentialsUpdate): Credentials {
  return {
    llmApiKey: update.llm_api_key === undefined ? old.llmApiKey : update.llm_api_key,
    llmKeyWithheld: update.llm_key_withheld ?? (update.llm_api_key === undefined && old.llmKeyWithheld),
    searchApiKey: update.search_api_key === undefined ? old.searchApiKey : update.search_api_key,
    mcpServers: update.mcp_config ? toMcpServers(update.mcp_config.mcpServers) : old.mcpServers,
    secrets: { ...old.secrets, ...update.secrets },
    git: update.git === undefined ? old.git : update.git,
  };
}

/** Every value in it that must not be seen; looked-up secrets are known once they were looked up. */
export function secretValues(credentials: Credentials): string[] {
  const { llmApiKey, searchApiKey, mcpServers, secrets, git } = credentials;
  const given = Object.values(secrets).flatMap((secret) =>
    secret.kind === 'LookupSecret' ? Object.values(secret.headers ?? {}) : [secret.value],
  );
  return [
    llmApiKey,
    searchApiKey,
    ...mcpSecretValues(mcpServers),
    ...given,
    ...gitSecrets(git?.credentials ?? []),
  ].filter((value) => value !== null);
}

const TIMEOUT_MS = 10_000;

/**
 * Values of the secrets that are kept elsewhere. One that cannot be had keeps its last value, or is left out: the tools
 * that need it will say so.
 */
export async function lookUpSecrets(
  secrets: Record<string, ParsedSecret>,
  last: Record<string, string>,
): Promise<Record<string, string>> {
  const found = await Promise.all(
    Object.entries(secrets).map(async ([name, secret]) => {
      if (secret.kind !== 'LookupSecret') {
        return [];
      }
      try {
        return [[name, await fetchSecret(secret.url, secret.headers ?? {})] as const];
      } catch (error) {
        log('warn', 'a secret could not be looked up', {
          name,
          reason: describeFailure(error).name,
        });
        return last[name] === undefined ? [] : [[name, last[name]] as const];
      }
    }),
  );
  return Object.fromEntries(found.flat());
}

async function fetchSecret(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) {
    throw new Error('the secret was refused');
  }
  const text = await response.text();
  return response.headers.get('content-type')?.includes('json') ? jsonString(text) : text;
}

function jsonString(text: string): string {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'string') {
    throw new TypeError('the secret is no text');
  }
  return value;
}

/** Code of the event about a conversation that does not go on for want of its key. */
export const KEY_WITHHELD = 'LlmKeyWithheld';

/**
 * Why a conversation whose model wants a key has none, and what to do, for its user.
 *
 * @param isWithheld whoever gives credentials has a key, but for another server
 */
export function missingKeyDetail(
  { id, llm }: Pick<ConversationRecord, 'id' | 'llm'>,
  isWithheld: boolean,
): string {
  return isWithheld
    ? `The settings name another model server than this conversation's (${llm.model}${place(llm.baseUrl)}), so their ` +
        'key is not sent there. Name that server in the settings again (llm_model, llm_base_url, llm_api_key) and ' +
        'send a message, or start another conversation.'
    : `The LLM key is not kept over a restart: give it again with POST /api/conversations/${id}/credentials.`;
}

/** The server alone: the rest of an address may be secret. */
function place(baseUrl: string | null): string {
  const text = baseUrl?.trim() ?? '';
  return URL.canParse(text) ? ` at ${new URL(text).origin}` : '';
}
