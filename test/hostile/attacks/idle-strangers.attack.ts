import { setTimeout as wait } from 'node:timers/promises';
import { type Attack, held, ofService } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { IdleConnections, whatArrives } from '../support/idle-connections.js';
import { ResponseTimes } from '../support/response-times.js';

/** As many as all callers without a key may have at a time, of each kind. */
const IDLE = 100;
const SETTLE_MS = 1_000;
const MAX_GROWTH_MIB = 300;

/** Requests that say how long their body is, and never send more than its first byte. */
const PATHS = [
  ['/oauth/device/token', 1_000],
  ['/auth/key', 1_000],
  ['/api/automation/v1/events/ORG/github', 1_000_000],
] as const;

export const idleStrangers: Attack = {
  name: 'idle-strangers',
  finding: 5,
  timed: true,
  what: `Somebody without a key opens ${IDLE * PATHS.length} connections, sends a head and one byte over each, and opens those again that are closed.`,
  expected: ofService(
    held(
      'all signed events arrive, whoever signs in is let in, and 99 of 100 answers take others less than 250 ms',
    ),
  ),
  run: (world) => world.apart({ environment: { RATE_LIMIT_PER_MINUTE: '0' }, sandboxes: false }, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const alice = await EventSender.create(world, world.alice.client);
  await alice.automation({ max_runs_per_day: 1 });
  const org = new URL(alice.url).pathname.split('/').at(-2) ?? '';
  const idle = new IdleConnections(world);
  PATHS.forEach(([path, length]) => idle.open(path.replace('ORG', org), length, IDLE));
  await wait(SETTLE_MS);
  const times = ResponseTimes.watch(world);
  const arrived = await whatArrives(world, alice);
  const others = await times.end(MAX_GROWTH_MIB);
  const opened = idle.close();
  return {
    held: arrived.held && others.held,
    seen: `${arrived.seen}; ${opened} idle connections were opened; ${others.seen}`,
  };
}
