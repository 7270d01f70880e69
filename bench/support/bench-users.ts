import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { generateApiKey, parseApiKey } from '../../src/auth/api-key-format.js';

const INSERT = `
  WITH given AS (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[]) AS given (id, email, key_id, secret_hash)),
  made AS (INSERT INTO users (id, email) SELECT id, email FROM given)
  INSERT INTO api_keys (id, user_id, name, secret_hash) SELECT key_id, id, 'bench', secret_hash FROM given`;

/** Inserts users into the database, `NAME-0@example.com` and so on, and returns their keys. */
export async function createBenchUsers(
  databaseUrl: string,
  count: number,
  name = 'bench',
): Promise<string[]> {
  const keys = Array.from({ length: count }, generateApiKey);
  const parsed = keys.map(parseApiKey);
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(INSERT, [
      keys.map(() => randomUUID()),
      keys.map((_, index) => `${name}-${index}@example.com`),
      parsed.map((key) => key?.id),
      parsed.map((key) => key?.secretHash),
    ]);
  } finally {
    await client.end();
  }
  return keys;
}

/** A key as long as those of today's providers; the number makes it the user's own. */
const keyOf = (kind: string, user: number) => `${kind}-${user}-`.padEnd(164, 'k3y');

/** A full body of `POST /api/settings`, 1.4 KB, with every column of the settings. */
export function settingsBody(user: number): string {
  return JSON.stringify({
    language: 'en',
    agent: 'CodeActAgent',
    max_iterations: 250,
    security_analyzer: 'llm',
    confirmation_mode: true,
    llm_model: 'anthropic/large-model-2026-08',
    llm_api_key: keyOf('llm', user),
    llm_base_url: `https://llm-gateway.eu-central-1.example.com/tenants/${user}/v1`,
    remote_runtime_resource_factor: 2,
    enable_default_condenser: true,
    enable_sound_notifications: false,
    enable_proactive_conversation_starters: true,
    enable_solvability_analysis: true,
    user_consents_to_analytics: false,
    sandbox_base_container_image: 'registry.example.com/platform/sandbox-base:2026.08.3-bookworm',
    sandbox_runtime_container_image: 'registry.example.com/platform/sandbox-runtime:2026.08.3',
    search_api_key: keyOf('search', user),
    sandbox_api_key: keyOf('sandbox', user),
    max_budget_per_task: 12.5,
    email: `developer-${user}@example.com`,
    email_verified: true,
    git_user_name: 'A developer of the benchmark',
    git_user_email: `developer-${user}@users.noreply.example.com`,
  });
}
