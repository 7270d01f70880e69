import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { generateApiKey, parseApiKey } from '../../src/auth/api-key-format.js';

/** Inserts users into the database, `NAME-0@example.com` and so on, and returns their keys. */
export async function createBenchUsers(
  databaseUrl: string,
  count: number,
  name = 'bench',
): Promise<string[]> {
  const keys = Array.from({ length: count }, generateApiKey);
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    for (const [index, key] of keys.entries()) {
      const parsed = parseApiKey(key);
      const userId = randomUUID();
      await client.query('INSERT INTO users (id, email) VALUES ($1, $2)', [
        userId,
        `${name}-${index}@example.com`,
      ]);
      await client.query('INSERT INTO api_keys (id, user_id, name, secret_hash) VALUES ($1, $2, $3, $4)', [
        parsed?.id,
        userId,
        'bench',
        parsed?.secretHash,
      ]);
    }
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
