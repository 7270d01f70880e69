import type { GitAccess } from '../../agent-protocol/git-access.js';
import type { McpServers } from '../../agent-protocol/mcp-servers.js';
import { gitSecrets } from '../git/git-variables.js';
import { mcpSecretValues, toMcpServers } from './mcp-servers.js';
import type { CredentialsUpdate, ParsedSecret, StartRequest } from './start-schema.js';

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
