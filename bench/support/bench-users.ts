import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { generateApiKey, parseApiKey } from '../../src/auth/api-key-format.js';

/** Puts users straight into the database; returns their keys. */
export async function createBenchUsers(databaseUrl: string, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, generateApiKey);
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    for (const [index, key] of keys.entries()) {
      const parsed = parseApiKey(key);
      const userId = randomUUID();
      await client.query('INSERT INTO users (id, email) VALUES ($1, $2)', [
        userId,
        `bench-${index}@example.com`,
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
