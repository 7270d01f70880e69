import type { McpServer, McpServers } from '../../agent-protocol/conversation.js';
import type { GitAccess } from '../../agent-protocol/git.js';
import { gitSecrets } from '../git/git-credentials.js';
import type { ConversationRecord } from './conversation-record.js';
import type {
  CredentialsUpdate,
  ParsedMcpServers,
  ParsedSecret,
  StartRequest,
} from './conversation-schemas.js';

/** Code of the event about a conversation that cannot continue without its key. */
export const KEY_WITHHELD = 'LlmKeyWithheld';

/**
 * The secrets of a conversation, kept in memory only: after a restart clients must give them again. The engine gets them
 * with its settings (`ConversationState.settings`); `language-model.ts` is the only place that uses the LLM key.
 */
export interface Credentials {
  llmApiKey: string | null;
  /** The client has a key, but for another server than the conversation's. */
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
export function credentialsFromRequest(request: StartRequest): Credentials {
  return {
    llmApiKey: request.agent.llm.api_key ?? null,
    llmKeyWithheld: false,
    searchApiKey: request.slipway.search_api_key ?? null,
    mcpServers: toMcpServers(request.agent.mcp_config?.mcpServers),
    secrets: request.secrets,
    git: request.slipway.git ?? null,
  };
}

/** Replaces what an update gives; secrets one by one. */
export function mergeCredentials(old: Credentials, update: CredentialsUpdate): Credentials {
  return {
    llmApiKey: update.llm_api_key === undefined ? old.llmApiKey : update.llm_api_key,
    llmKeyWithheld: update.llm_key_withheld ?? (update.llm_api_key === undefined && old.llmKeyWithheld),
    searchApiKey: update.search_api_key === undefined ? old.searchApiKey : update.search_api_key,
    mcpServers: update.mcp_config ? toMcpServers(update.mcp_config.mcpServers) : old.mcpServers,
    secrets: { ...old.secrets, ...update.secrets },
    git: update.git === undefined ? old.git : update.git,
  };
}

/** Every value to mask. The values of looked-up secrets are not among them. */
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

/**
 * Tells the user why the conversation lacks a key for its model, and what to do.
 *
 * @param isWithheld the client has a key, but for another server
 */
export function missingKeyDetail(
  { id, llm }: Pick<ConversationRecord, 'id' | 'llm'>,
  isWithheld: boolean,
): string {
  return isWithheld
    ? `The settings name another model server than this conversation's (${llm.model}${originNote(llm.baseUrl)}), so their ` +
        'key is not sent there. Name that server in the settings again (llm_model, llm_base_url, llm_api_key) and ' +
        'send a message, or start another conversation.'
    : `The LLM key is not kept over a restart: give it again with POST /api/conversations/${id}/credentials.`;
}

/** Only the origin: the rest of an address may be secret. */
function originNote(baseUrl: string | null): string {
  const text = baseUrl?.trim() ?? '';
  return URL.canParse(text) ? ` at ${new URL(text).origin}` : '';
}

/** Tool servers in the form that the engine needs; null if there are none. Entries with neither command nor URL are skipped. */
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

/** The secret values of a configuration: variables and headers. */
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
