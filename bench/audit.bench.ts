import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { Client } from 'pg';
import { connectionUrl, startEmbeddedPostgres } from '../src/database/embedded-postgres/embedded-postgres.js';
import { startServiceProcess } from '../test/support/service-process.js';
import { withFolder } from './support/fixtures.js';
import { type Outcome, median, print, spread } from './support/report.js';

const ENTRIES = 100_000;
const ROUNDS = 30;
const MAX_MS = 10;
const ADMIN_KEY = 'bench-administrator-key';

/** Entries of 500 users over a year: most about settings, one in a thousand about a user. */
const FILL = `
  INSERT INTO audit_entries (at, id, action, outcome, actor_kind, actor_user_id, resource_id, owner_user_id, request_id,
    client_address, details)
  SELECT now() - make_interval(mins => 5 * n), gen_random_uuid(),
    CASE WHEN n % 1000 = 0 THEN 'user.create' WHEN n % 10 = 0 THEN 'secret.update' ELSE 'settings.update' END,
    'done', 'user', owner.id, 'NAME_' || n % 5000, owner.id, 'request-' || n, '10.0.0.1', '{"members": ["language"]}'
  FROM generate_series(1, $1::int) AS n
  CROSS JOIN LATERAL (SELECT md5((n % 500)::text)::uuid AS id) AS owner`;

const USER = `SELECT md5('7')::uuid AS id`;

/** Pages of 100 audit entries by each filter, and far from the newest. */
export async function benchAudit(): Promise<Outcome[]> {
  return await withFolder(async (folder) => {
    const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'data') });
    const databaseUrl = connectionUrl(postgres.connection);
    try {
      const service = await startServiceProcess({
        cwd: folder,
        environment: {
          DATABASE_URL: databaseUrl,
          ENCRYPTION_KEYS: `bench:${randomBytes(32).toString('base64')}`,
          BOOTSTRAP_API_KEY: ADMIN_KEY,
          LOG_REQUESTS: 'false',
          RATE_LIMIT_PER_MINUTE: '0',
        },
        nodeArgs: [],
      });
      try {
        const user = await fill(databaseUrl);
        return await measure(service.url, user);
      } finally {
        await service.stop();
      }
    } finally {
      await postgres.stop();
    }
  });
}

/** @returns the id of one of the users */
async function fill(databaseUrl: string): Promise<string> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(FILL, [ENTRIES]);
    await client.query('ANALYZE audit_entries');
    const { rows } = await client.query<{ id: string }>(USER);
    return rows[0]?.id ?? '';
  } finally {
    await client.end();
  }
}

async function timeOf(url: string): Promise<number> {
  const before = performance.now();
  const response = await fetch(url, { headers: { 'X-Session-API-Key': ADMIN_KEY } });
  await response.arrayBuffer();
  if (response.status !== 200) {
    throw new Error(`${url}: ${response.status}`);
  }
  return performance.now() - before;
}

async function measure(service: string, user: string): Promise<Outcome[]> {
  const halfAYearAgo = new Date(Date.now() - 180 * 86_400_000).toISOString();
  const filters: Record<string, Record<string, string>> = {
    'no filter': {},
    'the middle of the year': { until: halfAYearAgo },
    'an actor': { actor_user_id: user },
    'an owner and a type': { owner_user_id: user, resource_type: 'secret' },
    'a rare action': { action: 'user.create' },
    'a name': { resource_id: 'NAME_4711' },
    'a request': { request_id: 'request-4711' },
    nothing: { resource_type: 'api_key', until: halfAYearAgo },
  };
  const outcomes: Outcome[] = [];
  for (const [name, filter] of Object.entries(filters)) {
    const url = `${service}/api/v1/audit?${new URLSearchParams(filter).toString()}`;
    const times: number[] = [];
    const bare: number[] = [];
    for (let round = -5; round < ROUNDS; round += 1) {
      const [own, other] = [await timeOf(url), await timeOf(`${service}/health/live`)];
      if (round >= 0) {
        times.push(own);
        bare.push(other);
      }
    }
    const ratio = (median(times) / median(bare)).toFixed(1);
    print(`  by ${name}: ${spread(times, 1)} ms, ${ratio} x /health/live`);
    outcomes.push({
      what: `GET /api/v1/audit by ${name}, ${ENTRIES} entries`,
      target: `<= ${MAX_MS} ms`,
      measured: `${spread(times, 1)} ms`,
      reached: median(times) <= MAX_MS,
    });
  }
  return outcomes;
}
