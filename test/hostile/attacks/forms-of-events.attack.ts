import { type Attack, held, ofService } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { Vitals } from '../support/vitals.js';

const MIB = 1_048_576;
const AT_ONCE = 3;
const ROUNDS = 5;
const MAX_P99_MS = 250;
/** Of 450 that are sent; what has been read goes when the collector comes. */
const MAX_GROWTH_MIB = 300;
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };

/** What takes a parser that is not linear longest. */
const FORMS = ['a&', '&', 'a=', 'a=&', '%', '+'].map((part) => filled('', part, MIB - 1));
const LARGE_FORMS = [filled('payload=', '%7B'), filled('payload=', '%')];
const JSON_BODIES = [filled('{"a":"', '\\\\"'), filled('', '{'), filled('{', ','), filled('{', '"a":1,')];
const BODIES = [
  ...[...Array.from({ length: ROUNDS }, () => FORMS).flat(), ...LARGE_FORMS].map((body) => ({
    body,
    type: FORM,
  })),
  ...JSON_BODIES.map((body) => ({ body, type: {} })),
];

function filled(first: string, part: string, bytes = 20 * MIB): Buffer {
  return Buffer.from(first + part.repeat(Math.floor(bytes / part.length)));
}

export const formsOfEvents: Attack = {
  name: 'forms-of-events',
  finding: 4,
  timed: true,
  what: `Bob's repository sends signed forms of a mebibyte that are nothing but fields, and bodies of 20, ${AT_ONCE} at a time.`,
  expected: ofService(held('each is refused within milliseconds, and Alice notices none')),
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
  for (const { body, type } of BODIES) {
    const signed = { ...type, 'X-Hub-Signature-256': `sha256=${bob.digest(body)}` };
    const answers = Array.from({ length: AT_ONCE }, async () => {
      statuses.add(await statusOf(bob.send(body, signed)));
    });
    await Promise.all(answers);
  }
  const others = await vitals.end(MAX_GROWTH_MIB, MAX_P99_MS);
  return {
    held: others.held && [...statuses].every((status) => status === 400 || status === 422),
    seen: `${BODIES.length * AT_ONCE} bodies: ${[...statuses].join(' and ')}; ${others.seen}`,
  };
}
