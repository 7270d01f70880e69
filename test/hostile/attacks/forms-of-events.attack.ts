import { type Attack, held, ofService } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const MIB = 1_048_576;
const AT_ONCE = 3;
const ROUNDS = 5;
const MAX_P99_MS = 250;
const MAX_GROWTH_MIB = 200;
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

/** What takes a parser that is not linear longest. */
const BODIES = ['a&', '&', 'a=', 'a=&', '%', '+'].map((part) =>
  Buffer.from(part.repeat(Math.floor((MIB - 1) / part.length))),
);

export const formsOfEvents: Attack = {
  name: 'forms-of-events',
  finding: 4,
  timed: true,
  what: `Bob's repository sends signed forms of a mebibyte that are nothing but fields, ${AT_ONCE} at a time.`,
  expected: ofService(held('each is refused within milliseconds, and Alice notices none')),
  timeoutMs: 180_000,
  run: (world) => world.apart({}, attack),
};

/** 0: no answer. */
async function statusOf(sent: Promise<Response>): Promise<number> {
  try {
    const response = await sent;
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const bob = await EventSender.create(world, world.bob.client);
  await bob.automation({});
  const vitals = Vitals.watch(world);
  const statuses = new Set<number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const body of BODIES) {
      const signed = { ...FORM, 'X-Hub-Signature-256': `sha256=${bob.digest(body)}` };
      const answers = Array.from({ length: AT_ONCE }, async () => {
        statuses.add(await statusOf(bob.send(body, signed)));
      });
      await Promise.all(answers);
    }
  }
  const others = await vitals.end(MAX_GROWTH_MIB, MAX_P99_MS);
  return {
    held: others.held && [...statuses].every((status) => status === 400 || status === 422),
    seen: `${ROUNDS * BODIES.length * AT_ONCE} forms: ${[...statuses].join(' and ')}; ${others.seen}`,
  };
}
