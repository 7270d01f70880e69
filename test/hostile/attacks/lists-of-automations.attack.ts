import { type Attack, held, ofService } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { MIB, ResponseTimes } from '../support/response-times.js';

const PATH = '/api/automation/v1';
const COPIES = 99;
const AT_ONCE = 5;
const ROUNDS = 20;
const MAX_GROWTH_MIB = 300;

export const listsOfAutomations: Attack = {
  name: 'lists-of-automations',
  finding: 'not tried',
  timed: true,
  what: `Bob has a hundred automations of 110 kB, asks for all of them ${AT_ONCE} at a time, and sends events that none of them waits for.`,
  expected: ofService(
    held('no page has more than 4 MiB, and 99 of 100 answers take others less than 250 ms'),
  ),
  run: (world) => world.apart({}, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const bob = await EventSender.create(world, world.bob.client);
  const config = { text: 'x'.repeat(30_000) };
  const first = await bob.automation({
    prompt: 'ü'.repeat(40_000),
    template: { id: 'large', version: '1', config },
    trigger: { type: 'event', source: 'github', on: 'never' },
  });
  // Each is as one request would make it.
  await world.query(
    `INSERT INTO automations (id, user_id, org_id, name, state, trigger, work)
     SELECT gen_random_uuid(), user_id, org_id, name, state, trigger, work
     FROM automations, generate_series(1, $2::int) WHERE id = $1`,
    [first, COPIES],
  );
  const times = ResponseTimes.watch(world);
  const sizes: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const lists = Array.from({ length: AT_ONCE }, () => pageBytes(world));
    const [event] = await Promise.all([bob.deliver({ number: round }), ...lists]);
    await event.arrayBuffer();
    sizes.push(...(await Promise.all(lists)));
  }
  const others = await times.end(MAX_GROWTH_MIB);
  const largest = Math.max(...sizes);
  return {
    held: others.held && largest <= 4 * MIB,
    seen: `${sizes.length} pages of at most ${(largest / MIB).toFixed(1)} MiB; ${others.seen}`,
  };
}

async function pageBytes({ url, bob }: HostileWorld): Promise<number> {
  const response = await fetch(`${url}${PATH}?limit=100`, {
    headers: { 'X-Session-API-Key': bob.client.key },
  });
  const { byteLength } = await response.arrayBuffer();
  if (!response.ok) {
    throw new Error(`the list was answered with ${response.status}`);
  }
  return byteLength;
}
