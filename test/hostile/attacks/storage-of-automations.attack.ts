import { type Attack, ofService, held } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';
import { MIB, ResponseTimes } from '../support/response-times.js';

const PATH = '/api/automation/v1';
const LARGE_EVENTS = 110;
const LARGE_BYTES = 1_000_000;
const MAX_EVENT_BYTES = 100_000_000;
const SMALL_EVENTS = 43;
const IDLE_AUTOMATIONS = 98;
/** Each names as many keys as it may, which the reason repeats. */
const KEYS = Array.from({ length: 50 }, (_none, index) =>
  ['a', 'b', 'c', 'd', 'e'].map((part) => `${part}${index}`.padEnd(98, 'x')).join('.'),
);
const MESSAGES = 130;
const MAX_MESSAGES = 100;
const MAX_GROWTH_MIB = 500;

export const storageOfAutomations: Attack = {
  name: 'storage-of-automations',
  finding: 6,
  timed: true,
  what: `Bob sends ${LARGE_EVENTS} events of 1 MB to an automation that is busy and has a long prompt, ${SMALL_EVENTS} small ones that ${IDLE_AUTOMATIONS} automations do not wait for, and ${MESSAGES} messages that no agent is to go on with.`,
  expected: ofService(
    held('events have 100 MB, what did not begin is not stored, and a hundred messages wait for an agent'),
  ),
  run: (world) => world.apart({}, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const times = ResponseTimes.watch(world);
  const small = await smallEvents(world);
  const large = await largeEvents(world);
  const taken = await messages(world);
  const others = await times.end(MAX_GROWTH_MIB);
  return {
    held:
      small < MIB &&
      large.payloads <= MAX_EVENT_BYTES &&
      large.skippedRuns > 0 &&
      large.skippedWork < 1_000 * large.skippedRuns &&
      taken.accepted <= MAX_MESSAGES &&
      taken.refused.every((status) => status === 507) &&
      others.held,
    seen: `${SMALL_EVENTS} small events left ${mib(small)} of reasons; ${LARGE_EVENTS} large ones left ${mib(large.payloads)}, and ${large.skippedRuns} skipped runs with ${mib(large.skippedWork)} of work; ${taken.accepted} of ${MESSAGES} messages were taken, the others answered ${[...new Set(taken.refused)].join(', ') || 'never'}; ${others.seen}`,
  };
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

async function sum(world: HostileWorld, expression: string, from: string): Promise<number> {
  const [row] = await world.query(`SELECT coalesce(sum(${expression}), 0)::float8 AS bytes FROM ${from}`, []);
  return Number(row?.['bytes']);
}

async function smallEvents(world: HostileWorld): Promise<number> {
  const bob = await EventSender.create(world, world.bob.client);
  const trigger = { type: 'event', source: 'github', on: KEYS };
  const first = await bob.automation({ trigger, state: 'INACTIVE' });
  // As many as a user may have, with one statement where the attacker would make a hundred requests.
  await world.query(
    `INSERT INTO automations (id, user_id, org_id, name, state, trigger, work)
     SELECT gen_random_uuid(), user_id, org_id, name, 'ACTIVE', trigger, work
     FROM automations, generate_series(1, $2::int) WHERE id = $1`,
    [first, IDLE_AUTOMATIONS],
  );
  for (let count = 0; count < SMALL_EVENTS; count += 1) {
    const response = await bob.deliver({ number: count });
    await response.arrayBuffer();
    requireTaken(response.status);
  }
  return sum(world, 'octet_length(outcomes::text)', 'automation_events');
}

async function largeEvents(
  world: HostileWorld,
): Promise<{ payloads: number; skippedRuns: number; skippedWork: number }> {
  const bob = await EventSender.create(world, world.bob.client);
  const concurrency = { limit: 1, when_busy: 'skip' };
  const id = await bob.automation({ prompt: 'ü'.repeat(50_000), max_runs_per_day: 1_000, concurrency });
  const busy = await bob.automation({
    prompt: 'wait',
    trigger: { type: 'event', source: 'none', on: 'never' },
  });
  // One that never ends keeps the others from beginning.
  await world.query(
    `INSERT INTO automation_runs (id, automation_id, user_id, cause, trigger_source, status, work)
     SELECT gen_random_uuid(), $1, user_id, 'manual:busy', 'manual', 'RUNNING', work FROM automations WHERE id = $2`,
    [id, busy],
  );
  const text = 'x'.repeat(LARGE_BYTES);
  for (let count = 0; count < LARGE_EVENTS; count += 1) {
    const response = await bob.deliver({ number: count, text });
    await response.arrayBuffer();
    requireTaken(response.status);
  }
  const skipped = `automation_runs WHERE status = 'SKIPPED'`;
  return {
    payloads: await sum(world, 'octet_length(payload::text)', 'automation_events'),
    skippedRuns: await sum(world, '1', skipped),
    skippedWork: await sum(world, 'octet_length(work::text)', skipped),
  };
}

function requireTaken(status: number): void {
  if (status !== 202) {
    throw new Error(`an event of ${PATH} was answered with ${status}`);
  }
}

async function messages({ bob }: HostileWorld): Promise<{ accepted: number; refused: number[] }> {
  const statuses: number[] = [];
  for (let count = 0; count < MESSAGES; count += 1) {
    const body = { content: [{ type: 'text', text: 'x'.repeat(1_000) }], run: false };
    statuses.push(
      (await bob.send('POST', `/api/v1/app-conversations/${bob.conversationId}/send-message`, body)).status,
    );
  }
  const refused = statuses.filter((status) => status !== 200);
  return { accepted: statuses.length - refused.length, refused };
}
