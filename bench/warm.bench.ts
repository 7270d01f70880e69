import { setTimeout as delay } from 'node:timers/promises';
import { reservedPort } from '../test/support/reserved-port.js';
import { readyAfter, storeModel, withConversations } from './support/conversation-starts.js';
import { untilTrue } from './support/fixtures.js';
import { atMost, median, type Outcome, print, spread } from './support/report.js';
import type { SandboxService } from './support/sandbox-service.js';

const ROUNDS = 12;
const WARM_UP_ROUNDS = 4;
const MAX_READY_MS = 120;
const MAX_OUTSIDE = 1.1;
/** What a warm agent server loads before it is claimed, it loads shortly after it can be. */
const SETTLE_MS = 1_000;

/** Beyond these places are only those that are always open. */
const RULES = { default: 'deny', allow: ['npm'] };

/**
 * Measures POST to READY without a repository, with credentials inside, outside, and outside with rules for the network, in turns: in
 * warm sandboxes, and with settings that ask for others.
 */
export async function benchWarm(): Promise<Outcome[]> {
  const warm = { SANDBOX_WARM: '1' };
  const outside = async (): Promise<Record<string, string>> => ({
    ...warm,
    SANDBOX_CREDENTIALS: 'outside',
    SANDBOX_EGRESS_PORT: String(await reservedPort()),
  });
  const ruled = { ...(await outside()), SANDBOX_EGRESS: JSON.stringify(RULES) };
  return await withPlace({ ...warm, SANDBOX_CREDENTIALS: 'inside' }, async (inside) => {
    return await withPlace(await outside(), async (other) => {
      return await withPlace(ruled, async (narrow) => {
        return await compare(inside, { outside: other, 'outside, with rules': narrow });
      });
    });
  });
}

/** A service, with how long starts took there. */
interface Place {
  service: SandboxService;
  warm: number[];
  cold: number[];
}

async function withPlace<T>(
  environment: Record<string, string>,
  work: (place: Place) => Promise<T>,
): Promise<T> {
  return await withConversations(environment, async (service, modelUrl) => {
    await storeModel(service.clients[1], modelUrl, { remote_runtime_resource_factor: 2 });
    return await work({ service, warm: [], cold: [] });
  });
}

async function compare(inside: Place, others: Readonly<Record<string, Place>>): Promise<Outcome[]> {
  const places = Object.entries({ inside, ...others });
  for (let round = 1; round <= WARM_UP_ROUNDS + ROUNDS; round += 1) {
    for (const [, { service, warm, cold }] of places) {
      await untilWarm(service);
      const [warmClient, coldClient] = service.clients;
      const coldMs = await readyAfter(service, coldClient);
      const warmMs = await readyAfter(service, warmClient);
      if (round > WARM_UP_ROUNDS) {
        warm.push(warmMs);
        cold.push(coldMs);
      }
    }
  }
  for (const [name, { warm, cold }] of places) {
    print(`  READY after ${spread(warm, 0)} ms warm, ${spread(cold, 0)} ms cold, credentials ${name}`);
  }
  const note = `x${(median(inside.warm) / median(inside.cold)).toFixed(2)} of ${median(inside.cold).toFixed(0)} ms`;
  return [
    atMost(
      'conversation READY in a warm process sandbox (and against a cold one)',
      inside.warm,
      MAX_READY_MS,
      { note },
    ),
    ...Object.entries(others).flatMap(([name, other]) =>
      (['warm', 'cold'] as const).map((how) =>
        atMost(
          `the same with credentials ${name}, against inside: ${how}`,
          median(other[how]) / median(inside[how]),
          MAX_OUTSIDE,
          { unit: '', digits: 2, note: `${median(other[how]).toFixed(0)} ms` },
        ),
      ),
    ),
  ];
}

/** Waits until a warm sandbox is there to be claimed, as one that has waited for a while. */
export async function untilWarm({ database }: SandboxService): Promise<void> {
  await untilTrue(async () => {
    const { rows } = await database.query(`SELECT FROM warm_sandboxes WHERE status = 'READY'`);
    return rows.length === 1;
  }, 'a warm sandbox');
  await delay(SETTLE_MS);
}
