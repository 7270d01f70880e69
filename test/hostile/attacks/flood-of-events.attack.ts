import { setTimeout as wait } from 'node:timers/promises';
import { type Attack, held } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const EVENTS = 10_000;
const AT_ONCE = 80;
const AUTOMATIONS = 40;
const EVERY_MS = 500;
/** Until an event of the bystander is stored with the run that it made. */
const MAX_P95_MS = 2_000;
const MAX_P99_MS = 2_000;
const MAX_GROWTH_MIB = 250;
/** Thousands of elements that are one object, each of which is asked whether it is empty. */
const EXPENSIVE = '[@,@,@,@,@,@,@,@]|[*].[@,@,@,@,@,@,@,@]|[]|[*].[@,@,@,@,@,@,@,@]|[]|[?repository]|[0].b';

export const floodOfEvents: Attack = {
  name: 'flood-of-events',
  finding: 'not tried',
  timed: true,
  what: `Bob's repository sends ${EVENTS} events, ${AT_ONCE} at a time, each to ${AUTOMATIONS} automations whose filters cost as much as filters may.`,
  expected: {
    process: held(
      "what is beyond Bob's share is refused with 429, and Alice's events and requests are answered",
    ),
  },
  run: (world) => world.apart({}, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const alice = await EventSender.create(world, world.alice.client);
  const hers = await alice.automation({ max_runs_per_day: 1 });
  const bob = await EventSender.create(world, world.bob.client);
  for (let count = 0; count < AUTOMATIONS; count += 1) {
    await bob.automation({ trigger: { type: 'event', source: 'github', on: '*', filter: EXPENSIVE } });
  }
  const vitals = Vitals.watch(world);
  const flood = { isOver: false, statuses: new Map<number, number>() };
  const [delays] = await Promise.all([
    delaysOf(alice, flood),
    sendAll(bob, flood.statuses).finally(() => {
      flood.isOver = true;
    }),
  ]);
  const others = await vitals.end(MAX_GROWTH_MIB, MAX_P99_MS);
  const p95 = Math.round(
    delays.toSorted((one, other) => one - other)[Math.floor(delays.length * 0.95)] ?? Infinity,
  );
  const unexpected = [...flood.statuses.keys()].filter((status) => status !== 202 && status !== 429);
  const statuses = [...flood.statuses].map(([status, times]) => `${status} ${times} times`).join(', ');
  return {
    held:
      others.held &&
      p95 < MAX_P95_MS &&
      unexpected.length === 0 &&
      (flood.statuses.get(202) ?? 0) > 0 &&
      (await alice.runs(hers)).length > 0,
    seen: `${EVENTS} events: ${statuses}; ${delays.length} of Alice within ${p95} ms (p95); ${others.seen}`,
  };
}

async function sendAll(sender: EventSender, statuses: Map<number, number>): Promise<void> {
  const members = Array.from({ length: 1_000 }, (_none, index) => [`member_${index}`, index]);
  let left = EVENTS;
  const send = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const payload = { number: left, repository: Object.fromEntries(members) };
      const response = await sender.deliver(payload);
      await response.arrayBuffer();
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, send));
}

async function delaysOf(sender: EventSender, flood: { isOver: boolean }): Promise<number[]> {
  const delays: number[] = [];
  while (!flood.isOver) {
    const began = performance.now();
    const response = await sender.deliver({ number: delays.length });
    await response.arrayBuffer();
    delays.push(response.status === 202 ? performance.now() - began : Infinity);
    await wait(EVERY_MS);
  }
  return delays;
}
