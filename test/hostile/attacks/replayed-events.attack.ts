import { randomUUID } from 'node:crypto';
import { type Attack, held, ofService } from '../attack.js';
import { EventSender } from '../support/event-sender.js';
import type { HostileWorld } from '../support/hostile-world.js';

const TIME = '2026-11-21T09:30:00Z';
const OWN_SOURCE = 'tracker';
const OWN = { repository: { full_name: 'octo/app', name: 'app' }, sender: { id: 71, login: 'writer' } };
const COMMITS = {
  ref: 'refs/heads/main',
  before: 'a0',
  after: 'a1',
  commits: [{ id: 'a1', timestamp: TIME }],
};

/** What each host sends, by the names of its events. */
const BODIES: Record<string, Record<string, object>> = {
  github: {
    push: { ...COMMITS, head_commit: null, pusher: { name: 'writer' } },
    check_run: { action: 'completed', check_run: { id: 1, head_sha: 'a1' } },
    workflow_run: { action: 'completed', workflow_run: { id: 1, head_sha: 'a1' } },
    issues: { action: 'labeled', issue: { number: 7 }, label: { name: 'agent' } },
    issue_comment: { action: 'created', issue: { number: 7 }, comment: { id: 1, body: 'please' } },
  },
  gitlab: {
    push: { object_kind: 'push', ...COMMITS, project: { path_with_namespace: 'octo/app' } },
    pipeline: { object_kind: 'pipeline', object_attributes: { id: 1, sha: 'a1' } },
  },
  bitbucket: {
    'repo:push': { push: { changes: [{ new: { target: { hash: 'a1', date: TIME } } }] } },
    'pullrequest:created': { pullrequest: { id: 7, state: 'OPEN' } },
    'repo:commit_status_updated': { commit_status: { state: 'FAILED' } },
  },
  bitbucket_data_center: {
    'repo:refs_changed': { eventKey: 'repo:refs_changed', changes: [{ toHash: 'a1' }] },
    'pr:opened': { eventKey: 'pr:opened', pullRequest: { id: 7 } },
  },
  [OWN_SOURCE]: { build: { type: 'build', status: 'failed', updated_at: TIME } },
};
/** What each is called instead. */
const OTHER_NAMES: Record<string, string> = {
  push: 'deployment_status',
  issues: 'push',
  'repo:push': 'pullrequest:fulfilled',
  'pullrequest:created': 'pullrequest:fulfilled',
  'pr:opened': 'pr:merged',
};
const MAX_BYTES = 20_000;

export const replayedEvents: Attack = {
  name: 'replayed-events',
  finding: 'not tried',
  what: "Bob has recorded signed events of Alice's hosts, and sends them again: under another delivery id, under another event's name, and once the service has removed what it knew of them.",
  expected: ofService(held('each body counts once, and only as what it looks like')),
  run: (world) =>
    world.apart({ environment: { AUTOMATION_EVENT_BYTES: String(MAX_BYTES) }, sandboxes: false }, attack),
};

async function attack(world: HostileWorld): Promise<{ held: boolean; seen: string }> {
  const passed: string[] = [];
  let tried = 0;
  for (const [source, bodies] of Object.entries(BODIES)) {
    const sender = await EventSender.create(world, world.alice.client, source);
    const send = async (body: Buffer, name: string): Promise<number> =>
      (await sender.send(body, headersOf(sender, body, name))).status;
    await sender.automation({ trigger: { type: 'event', source, on: '*' } });
    const sent = Object.entries(bodies).map(([name, body]) => ({ name, body: bytesOf(body) }));
    for (const { name, body } of sent) {
      await required(send(body, name));
      tried += 2;
      const again = [await send(body, name), await send(body, OTHER_NAMES[name] ?? 'ping')];
      passed.push(
        ...again
          .flatMap((status, index) => (status === 202 ? [WAYS[index] ?? ''] : []))
          .map(of(source, name)),
      );
    }
    // Larger than all that may be kept of events, so that the earlier ones go.
    await required(send(bytesOf({ text: 'x'.repeat(2 * MAX_BYTES) }), 'ping'));
    for (const { name, body } of sent) {
      tried += 1;
      passed.push(...((await send(body, name)) === 202 ? [of(source, name)('later')] : []));
    }
    for (const [name, body] of Object.entries(bodies)) {
      const other = OTHER_NAMES[name];
      if (other !== undefined) {
        tried += 1;
        const fresh = bytesOf({ ...body, number: randomUUID() });
        passed.push(
          ...((await isNamed(world, sender, fresh, other)) ? [of(source, name)(`as ${other}`)] : []),
        );
      }
    }
  }
  return {
    held: passed.length === 0,
    seen: `${passed.length} of ${tried} counted${passed.length === 0 ? '' : `: ${passed.slice(0, 5).join(', ')}`}`,
  };
}

const WAYS = ['another id', 'another id and name'];

function of(source: string, name: string): (way: string) => string {
  return (way) => `${source} ${name} (${way})`;
}

function bytesOf(body: object): Buffer {
  return Buffer.from(JSON.stringify({ ...OWN, ...body }));
}

function headersOf(sender: EventSender, body: Buffer, name: string): Record<string, string> {
  const signature = `sha256=${sender.digest(body)}`;
  const [names, ids, signatures] = [
    ['X-GitHub-Event', 'X-Event-Key'],
    ['X-GitHub-Delivery', 'X-Request-UUID', 'X-Request-Id', 'Idempotency-Key', 'X-Gitlab-Event-UUID'],
    ['X-Hub-Signature-256', 'X-Hub-Signature', 'X-Signature-256'],
  ];
  return {
    'X-Gitlab-Token': sender.secret,
    ...Object.fromEntries([
      ...(names ?? []).map((header) => [header, name]),
      ...(ids ?? []).map((header) => [header, randomUUID()]),
      ...(signatures ?? []).map((header) => [header, signature]),
    ]),
  };
}

/** Whether the event that is stored has the name that it was sent under. */
async function isNamed(
  world: HostileWorld,
  sender: EventSender,
  body: Buffer,
  name: string,
): Promise<boolean> {
  const response = await sender.send(body, headersOf(sender, body, name));
  const { event_id: id } = Object(await response.json());
  const [row] = await world.query('SELECT event_key FROM automation_events WHERE id = $1', [id]);
  return String(row?.['event_key']).startsWith(name.replaceAll(':', '.'));
}

async function required(status: Promise<number>): Promise<void> {
  if ((await status) !== 202) {
    throw new Error(`an event was answered with ${await status}`);
  }
}
