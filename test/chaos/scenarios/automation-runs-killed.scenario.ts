import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { FakeServer } from '../../fakes/fake-server.js';
import { EventSender, type Run } from '../../hostile/support/event-sender.js';
import { reservedPort } from '../../support/reserved-port.js';
import type { ServiceProcess } from '../../support/service-process.js';
import { until } from '../../support/until.js';
import { JourneyWorld } from '../../system/journeys/support/journey-world.js';
import { outcomeWithout, type Scenario } from '../scenario.js';

/** Where a run is held while the service is killed: what it is about to write to is locked. */
const STEPS = [
  { name: 'its event is stored', table: 'automation_runs', dies: 'both' },
  { name: 'it begins', table: 'app_conversation_start_tasks', dies: 'both' },
  { name: 'its conversation is started', table: 'app_conversations', dies: 'one' },
  { name: 'it ends', table: 'webhook_deliveries', dies: 'both' },
  { name: 'its end is told', table: null, dies: 'one' },
] as const;
const POLL_MS = 5;
const AGAIN_MS = 500;
const WAITING = `
  SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
const CONVERSATIONS = `
  SELECT request #>> '{metadata,automation_run_id}' AS run, count(*)::int AS count
  FROM app_conversation_start_tasks WHERE request #>> '{metadata,automation_run_id}' IS NOT NULL GROUP BY 1`;

export const automationRunsKilled: Scenario = {
  name: 'automation-runs-killed',
  what: 'Replicas are killed at each step of a run: while its event is stored, it begins, its conversation is started, it ends, and its end is told.',
  isShort: true,
  run: async () => {
    const receiver = await FakeServer.start(() => ({ status: 204 }));
    const journey = await JourneyWorld.open();
    try {
      const world = await World.open(journey, receiver);
      const delivered: string[] = [];
      for (const step of STEPS) {
        delivered.push(await world.killAt(step));
      }
      const runs = await world.ended(delivered.length);
      const counts = new Map(
        (await journey.query(CONVERSATIONS)).map(({ run, count }) => [run, Number(count)]),
      );
      const failed = runs.filter(({ status }) => status !== 'COMPLETED');
      const doubled =
        runs.length - delivered.length + [...counts.values()].filter((count) => count !== 1).length;
      const lost = runs.filter(({ id }) => !counts.has(id)).length;
      const problems = [
        ...failed.map(({ id, status }) => `run ${id} is ${status}`),
        doubled > 0 ? `${runs.length} runs with ${[...counts.values()].join(', ')} conversations` : null,
        lost > 0 ? `${lost} runs without a conversation` : null,
      ].filter((problem) => problem !== null);
      return outcomeWithout(world.kills, { acknowledged: delivered.length, lost, doubled }, problems);
    } finally {
      await journey.close();
      await receiver.close();
    }
  },
};

/** Two replicas, of which the first keeps its address. */
class World {
  kills = 0;

  private constructor(
    private readonly journey: JourneyWorld,
    private readonly receiver: FakeServer,
    private readonly environment: Record<string, string>,
    private readonly replicas: [ServiceProcess, ServiceProcess],
    private readonly sender: EventSender,
    private readonly automation: string,
  ) {}

  static async open(journey: JourneyWorld, receiver: FakeServer): Promise<World> {
    const environment = { WEBHOOK_HOST_ALLOWLIST: receiver.origin, PORT: String(await reservedPort()) };
    const second = await journey.start({ WEBHOOK_HOST_ALLOWLIST: receiver.origin });
    const first = await journey.start(environment);
    const user = await journey.createUser();
    await user.post('/api/v1/webhook-endpoints', {
      url: `${receiver.origin}/hook`,
      events: ['automation.run.finished'],
    });
    const sender = await EventSender.create({ url: first.url }, user);
    const automation = await sender.automation({ concurrency: { limit: STEPS.length } });
    return new World(journey, receiver, environment, [first, second], sender, automation);
  }

  /** @returns the id of the delivery, which the host repeats until it is taken */
  async killAt({ name, table, dies }: (typeof STEPS)[number]): Promise<string> {
    const id = randomUUID();
    const locker = new Client({ connectionString: this.journey.databaseUrl });
    await locker.connect();
    try {
      const before = this.receiver.requests.length;
      if (table === null) {
        this.receiver.injectFault({ kind: 'hang' }, { times: 1 });
      } else {
        await locker.query(`BEGIN; LOCK TABLE ${table} IN EXCLUSIVE MODE`);
      }
      const delivering = this.deliver(id, name);
      while (table === null ? this.receiver.requests.length === before : !(await isWaiting(locker))) {
        await wait(POLL_MS);
      }
      await this.kill(dies);
      await locker.query('ROLLBACK');
      await this.restart(dies);
      await delivering;
    } finally {
      await locker.end();
    }
    return id;
  }

  /** All runs, once none of them waits or works, and the end of each is told: of some twice, since one was held. */
  async ended(count: number): Promise<Run[]> {
    let runs: Run[] = [];
    await until(async () => {
      runs = await this.sender.runs(this.automation);
      return runs.length >= count && runs.every(({ status }) => !['PENDING', 'RUNNING'].includes(status));
    });
    await until(() => {
      const told = this.receiver.requests.map(({ body }) => jsonText(parseJson(body), 'data', 'run_id'));
      return runs.every(({ id }) => told.includes(id));
    });
    return runs;
  }

  private async deliver(id: string, title: string): Promise<void> {
    const body = Buffer.from(JSON.stringify({ issue: { title } }));
    const headers = {
      'X-GitHub-Delivery': id,
      'X-Hub-Signature-256': `sha256=${this.sender.digest(body)}`,
    };
    for (;;) {
      const response = await this.sender.send(body, headers).catch(() => null);
      if (response?.ok === true) {
        return;
      }
      await wait(AGAIN_MS);
    }
  }

  private async kill(dies: 'both' | 'one'): Promise<void> {
    for (const replica of dies === 'both' ? this.replicas : this.replicas.slice(0, 1)) {
      this.kills += 1;
      await this.journey.kill(replica);
    }
  }

  private async restart(dies: 'both' | 'one'): Promise<void> {
    if (dies === 'both') {
      this.replicas[1] = await this.journey.start({ ...this.environment, PORT: '0' });
    }
    this.replicas[0] = await this.journey.start(this.environment);
  }
}

async function isWaiting(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ count: number }>(WAITING);
  return (rows[0]?.count ?? 0) > 0;
}
