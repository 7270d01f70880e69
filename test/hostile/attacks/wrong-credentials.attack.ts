import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Attack, held, ofService } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const LIMIT = 20;
const REQUESTS = 4_000;
const IDLE_MS = 2_000;
const AT_ONCE = 20;
const TRANSACTIONS =
  'SELECT (xact_commit + xact_rollback)::float8 AS count FROM pg_stat_database WHERE datname = current_database()';
/** One look-up, and room for what the service does by itself meanwhile. */
const MOST = 1.5;

export const wrongCredentials: Attack = {
  name: 'wrong-credentials',
  finding: 'not tried',
  what: 'A stranger whose address has used up its share sends wrong keys of each kind in each header, with a cookie, as fast as the service answers.',
  expected: ofService(held('each request is refused after one look-up')),
  run: (world) =>
    world.apart({ environment: { RATE_LIMIT_PER_MINUTE: String(LIMIT) }, sandboxes: false }, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const send = async (): Promise<number> =>
    (await fetch(`${world.url}/api/v1/users/me`, { headers: wrongHeaders() })).status;
  for (let sent = 0; sent < LIMIT; sent += 1) {
    await send();
  }
  const idle = await transactionsDuring(world, () => delay(IDLE_MS));
  const statuses: number[] = [];
  const busy = await transactionsDuring(world, async () => {
    while (statuses.length < REQUESTS) {
      statuses.push(...(await Promise.all(Array.from({ length: AT_ONCE }, send))));
    }
  });
  // What the service does by itself grows with the time that a slow machine takes.
  const each = (busy.count - (idle.count / idle.ms) * busy.ms) / statuses.length;
  return {
    held: statuses.every((status) => status === 429) && each < MOST,
    seen: `${statuses.length} requests answered with ${[...new Set(statuses)].join(', ')}: ${each.toFixed(1)} transactions each`,
  };
}

function wrongHeaders(): Record<string, string> {
  const text = (length: number): string => Array.from({ length }, () => randomInt(36).toString(36)).join('');
  return {
    'X-Session-API-Key': text(43),
    'X-Access-Token': `slw_${text(8)}_${text(43)}`,
    Authorization: `Bearer slwc_${text(76)}`,
    Cookie: `slipway_session=ses_${text(8)}_${text(43)}`,
  };
}

async function transactionsDuring(
  world: HostileWorld,
  work: () => Promise<void>,
): Promise<{ count: number; ms: number }> {
  const [before, from] = [await transactions(world), performance.now()];
  await work();
  return { ms: performance.now() - from, count: (await transactions(world)) - before };
}

/** Of all connections; each tells of its own within a second, while it works. */
async function transactions(world: HostileWorld): Promise<number> {
  const [row] = await world.query(TRANSACTIONS, []);
  return Number(row?.['count']);
}
