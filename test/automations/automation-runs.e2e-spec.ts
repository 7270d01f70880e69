import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import type { MetricsSnapshot } from '@slipway/agent-protocol/conversation-api.js';
import { ScheduleWorker } from '../../src/automations/definitions/schedule.worker.js';
import { AutomationRunRepository } from '../../src/automations/runs/automation-run.repository.js';
import { AutomationRunWorker } from '../../src/automations/runs/automation-run.worker.js';
import { RunSettler } from '../../src/automations/runs/run-settler.js';
import { AppConversation } from '../../src/v1/app-conversations/conversation.entity.js';
import { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { FakeServer } from '../fakes/fake-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { AuditClient } from '../support/audit-client.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { AuditEntryDto } from '../../src/audit/api/audit.controller.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { readState } from '../support/read-state.js';
import { StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';

const PATH = '/api/automation/v1';
const EVERY_MINUTE = { type: 'cron', schedule: '* * * * *' };
const BY_HAND = { type: 'event', source: 'by-hand', on: 'never' };
const A_MINUTE = 60_000;

const STARTED = 'SELECT FROM automation_runs WHERE id = $1 AND start_task_ids IS NOT NULL';

interface Run {
  id: string;
  status: string;
  trigger_source: string;
  error_detail: string | null;
  conversation_id: string | null;
  cost: number | null;
}

let backend: InProcessSandboxBackend;
let receiver: FakeServer;
let app: TestApp;
let second: TestApp;
let user: TestUser;

beforeAll(async () => {
  backend = new InProcessSandboxBackend();
  receiver = await FakeServer.start(() => ({ status: 204 }));
  const environment = { WEBHOOK_HOST_ALLOWLIST: receiver.origin, AUTOMATION_RUN_RETENTION_SECONDS: '3600' };
  app = await createTestApp(environment, undefined, { sandboxBackend: backend });
  second = await createTestApp(environment, app.databaseUrl, { sandboxBackend: backend });
});

beforeEach(async () => {
  user = await app.createUser();
  await new StartsClient(app, user).settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model-4217' });
});

afterEach(async () => {
  backend.failure = null;
  backend.gate.open();
  await app.dataSource.query('DELETE FROM automations');
});

afterAll(async () => {
  await second.close();
  await app.close();
  await backend.close();
  await receiver.close();
});

function call(method: 'get' | 'post' | 'patch' | 'delete', path: string, as = user): request.Test {
  return app.as(as).ask(method, `${PATH}${path}`);
}

async function create(members: object = {}): Promise<string> {
  const body = { name: 'Greeting', prompt: 'say hello', trigger: BY_HAND, ...members };
  return (await call('post', '/preset/prompt').send(body).expect(201)).body.id;
}

async function dispatch(id: string, key?: string): Promise<Run> {
  const sent = call('post', `/${id}/dispatch`);
  return (await (key === undefined ? sent : sent.set('Idempotency-Key', key)).expect(201)).body;
}

async function runs(id: string): Promise<Run[]> {
  return (await call('get', `/${id}/runs`).expect(200)).body.runs;
}

/** Notices at once what has become of runs. */
async function settle(id: string): Promise<void> {
  for (const { conversation_id: conversation } of await runs(id)) {
    [app, second].forEach((each) => readState(each, conversation ?? ''));
  }
  await app.app.get(RunSettler).now();
}

/** The only run once it is in the status. */
async function reached(id: string, status: string): Promise<Run> {
  let run: Run | undefined;
  await until(async () => {
    await settle(id);
    [run] = await runs(id);
    return run !== undefined && (run.status === status || ['COMPLETED', 'FAILED'].includes(run.status));
  });
  expect(run).toMatchObject({ status });
  return run as Run;
}

/** Begins one that ends without the work of an agent, as its sandbox does not start. */
async function failed(id: string): Promise<void> {
  backend.failure = 'there is none';
  await dispatch(id);
  await until(async () => {
    await app.app.get(RunSettler).now();
    return (await runs(id))[0]?.status === 'FAILED';
  });
}

async function conversations(): Promise<string[]> {
  const rows = await app.dataSource.query<{ id: string }[]>(
    'SELECT app_conversation_id AS id FROM app_conversation_start_tasks WHERE user_id = $1',
    [user.id],
  );
  return rows.map(({ id }) => id.replaceAll('-', ''));
}

/** What each conversation may cost, in the order of their starts. */
async function budgets(): Promise<string[]> {
  const rows = await app.dataSource.query<{ budget: string }[]>(
    `SELECT request ->> 'max_budget' AS budget FROM app_conversation_start_tasks
     WHERE user_id = $1 ORDER BY created_at`,
    [user.id],
  );
  return rows.map(({ budget }) => budget);
}

/** A conversation and one that it has started, which still works, with what each has cost; no reader replaces that. */
async function family(address: string, cost: number): Promise<Record<'parent' | 'child', AppConversation>> {
  const rows = new ConversationRows(app);
  const { id: sandboxId } = await rows.sandbox(user.id, { address });
  const metrics: MetricsSnapshot = {
    model_name: 'm',
    accumulated_cost: cost,
    max_budget_per_task: null,
    accumulated_token_usage: null,
  };
  const known = { ...FOLLOWED_ELSEWHERE, metrics };
  const parent = await rows.conversation(user.id, { sandboxId }, { ...known, executionStatus: 'finished' });
  const members = { sandboxId, parentConversationId: parent.id };
  const child = await rows.conversation(user.id, members, { ...known, executionStatus: 'running' });
  return { parent, child };
}

describe('a run', () => {
  it('starts a conversation, is completed with it, and is told to webhook endpoints', async () => {
    await app
      .as(user)
      .post('/api/v1/webhook-endpoints', {
        url: `${receiver.origin}/hook`,
        events: ['automation.run.finished'],
      })
      .expect(201);
    const limits = { git: 'read', secret_names: ['DEPLOY_KEY'], fork: 'never' };
    const id = await create({ max_budget_per_run: 2.5, ...limits });
    const made = await dispatch(id);
    expect(made).toMatchObject({ status: 'PENDING', trigger_source: 'manual', conversation_id: null });

    const run = await reached(id, 'COMPLETED');

    expect(await conversations()).toEqual([run.conversation_id]);
    expect(await budgets()).toEqual(['2.5']);
    const [start] = await app.dataSource.getRepository(StartTask).findBy({ userId: user.id });
    expect(start?.request).toMatchObject(limits);
    const { body: conversation } = await app
      .as(user)
      .get(`/api/v1/app-conversations?ids=${run.conversation_id}`)
      .expect(200);
    expect(conversation).toMatchObject([
      { trigger: 'automation', metadata: { automation_id: id, automation_run_id: run.id } },
    ]);
    await until(() => receiver.requests.length > 0);
    expect(JSON.parse(String(receiver.requests[0]?.body))).toMatchObject({
      type: 'automation.run.finished',
      data: {
        run_id: run.id,
        automation_id: id,
        status: 'COMPLETED',
        conversation_id: run.conversation_id,
        error: null,
      },
    });
  });

  it('is named by the audit of the sandbox that was made for it, whoever does something to that', async () => {
    const { id: run } = await dispatch(await create());
    await until(async () => (await conversations()).length === 1);
    const audit = new AuditClient(app);
    const entry = async (action: string): Promise<AuditEntryDto | undefined> =>
      (await audit.find({ owner_user_id: user.id, action }))[0];
    const made = await entry('sandbox.create');
    expect(made).toMatchObject({ actor: { kind: 'service' }, details: { run_id: run } });
    await app.as(user).delete(`/api/v1/sandboxes/${made?.resource.id}`).expect(200);

    expect(await entry('sandbox.delete')).toMatchObject({
      actor: { kind: 'user', user_id: user.id },
      details: { run_id: run },
    });
  });

  it('fails with what its conversation says', async () => {
    const id = await create({ model: 'no-such-profile' });
    await dispatch(id);
    const { error_detail: detail } = await reached(id, 'FAILED');
    expect(detail).toContain('Expected the name of a profile that exists');
  });

  it('is made once under a key, and starts one conversation', async () => {
    const id = await create();
    const made = await Promise.all([dispatch(id, 'k'), dispatch(id, 'k'), dispatch(id, 'k')]);
    expect(new Set(made.map((run) => run.id)).size).toBe(1);
    await reached(id, 'COMPLETED');
    expect(await conversations()).toHaveLength(1);
  });

  it.each(['choose', 'setStarted'] as const)(
    'never doubles when its process dies before it can %s',
    async (step) => {
      const repository = app.app.get(AutomationRunRepository);
      const other = second.app.get(AutomationRunRepository);
      const before = [repository[step], other[step]] as const;
      let failures = 0;
      for (const each of [repository, other]) {
        each[step] = async () => {
          failures += 1;
          each[step] = before[0] as never;
          throw new Error('the process died');
        };
      }
      const id = await create();
      const { id: runId } = await dispatch(id);
      await until(() => failures > 0);
      for (const each of [repository, other]) {
        Reflect.deleteProperty(each, step);
      }
      await Promise.all(
        [app, second, app].map(({ app: nest }) => nest.get(AutomationRunWorker).drive(runId)),
      );
      await reached(id, 'COMPLETED');
      expect(await conversations()).toHaveLength(1);
    },
  );

  it('is cancelled with its conversation, once', async () => {
    const id = await create();
    backend.gate.close();
    const { id: runId } = await dispatch(id);
    await until(async () => (await conversations()).length === 1);
    await call('post', `/runs/${runId}/cancel`, await app.createUser()).expect(404);
    const { body } = await call('post', `/runs/${runId}/cancel`).expect(200);
    expect(body).toMatchObject({ status: 'CANCELLED', completed_at: expect.any(String) });
    await call('post', `/runs/${runId}/cancel`).expect(409);
    backend.gate.open();
    await until(async () => {
      await app.app.get(RunSettler).now();
      const [row] = await app.dataSource.query('SELECT stop_pending FROM automation_runs WHERE id = $1', [
        runId,
      ]);
      return row.stop_pending === false;
    });
    expect(await runs(id)).toMatchObject([{ status: 'CANCELLED' }]);
  });

  it('that is cancelled while it starts its conversation stops that one, too', async () => {
    const id = await create();
    backend.gate.close();
    const user_row = app.dataSource.createQueryRunner();
    await user_row.startTransaction();
    try {
      // The start waits for it.
      await user_row.query('SELECT FROM users WHERE id = $1 FOR NO KEY UPDATE', [user.id]);
      const { id: runId } = await dispatch(id);
      await until(async () => (await runs(id))[0]?.conversation_id !== null);
      await call('post', `/runs/${runId}/cancel`).expect(200);
      await app.app.get(RunSettler).now();
    } finally {
      await user_row.commitTransaction();
      await user_row.release();
    }
    await until(async () => (await conversations()).length === 1);
    await until(async () => {
      const [row] = await app.dataSource.query('SELECT stop_pending FROM automation_runs');
      return row.stop_pending === true;
    });
  });

  it('that is stopped stops what its agent has started, and counts what all of them have cost', async () => {
    const id = await create();
    await failed(id);
    const agentServer = await FakeServer.start(() => ({ status: 200, body: {} }));
    const { parent, child } = await family(agentServer.origin, 0.75);
    await app.dataSource.query(
      `UPDATE automation_runs SET status = 'CANCELLED', stop_pending = true, cost = NULL, conversation_ids = ARRAY[$2::uuid]
       WHERE automation_id = $1`,
      [id, parent.id],
    );
    await app.app.get(RunSettler).now();
    expect(await runs(id)).toMatchObject([{ status: 'CANCELLED', cost: 1.5 }]);
    const paths = agentServer.requests.map(({ path }) => path);
    expect(paths).toContainEqual(expect.stringMatching(`${child.id}/(pause|interrupt)$`));
    await agentServer.close();
  });

  it('ends although the sandbox of another one does not answer', async () => {
    const silent = await FakeServer.start(() => ({ status: 204 }));
    silent.injectFault({ kind: 'hang' });
    const rows = new ConversationRows(app);
    const { id: sandboxId } = await rows.sandbox(user.id, { address: silent.origin });
    const working = { ...FOLLOWED_ELSEWHERE, executionStatus: 'running' as const };
    const held = await rows.conversation(user.id, { sandboxId }, working);
    const id = await create();
    await failed(id);
    await failed(id);
    await app.dataSource.query(
      `WITH ordered AS (SELECT id, row_number() OVER (ORDER BY id) = 1 AS first FROM automation_runs)
       UPDATE automation_runs r SET status = CASE WHEN first THEN 'CANCELLED' ELSE 'RUNNING' END, stop_pending = first,
         conversation_ids = CASE WHEN first THEN ARRAY[$1::uuid] ELSE conversation_ids END
       FROM ordered WHERE ordered.id = r.id`,
      [held.id],
    );
    const settler = app.app.get(RunSettler);
    await until(async () => {
      // It goes on until the sandbox answers.
      void settler.now();
      return (await runs(id)).some(({ status }) => status === 'FAILED');
    });
    const pauses = await new AuditClient(app).find({ action: 'conversation.pause', resource_id: held.hex });
    expect(pauses.map(({ outcome }) => outcome)).not.toContain('failed');
    await silent.close();
  });

  it("may cost what is left of its automation's month, and waits for the next one when nothing is", async () => {
    const id = await create({ max_budget_per_month: 3 });
    await failed(id);
    await app.dataSource.query('UPDATE automation_runs SET cost = 2');
    await failed(id);
    expect(await budgets()).toEqual(['3', '1']);
    await app.dataSource.query('UPDATE automation_runs SET cost = 2');
    expect(await dispatch(id)).toMatchObject({
      status: 'SKIPPED',
      error_detail: expect.stringContaining('max_budget_per_month'),
    });
    await app.dataSource.query(
      `UPDATE automation_runs SET created_at = date_trunc('month', created_at, 'UTC') - interval '1 second'`,
    );
    await failed(id);
    expect(await budgets()).toEqual(['3', '1', '3']);
  });

  it('counts what its conversation, and what that has started, cost after it', async () => {
    const id = await create({ max_budget_per_month: 3 });
    await failed(id);
    const { parent } = await family(receiver.origin, 1.5);
    await app.dataSource.query('UPDATE automation_runs SET conversation_ids = ARRAY[$1::uuid]', [parent.id]);
    expect(await dispatch(id)).toMatchObject({
      status: 'SKIPPED',
      error_detail: expect.stringContaining('max_budget_per_month'),
    });
  });

  it('that waits is cancelled when the budget of its month is spent', async () => {
    const id = await create({ max_budget_per_month: 3 });
    backend.gate.close();
    await dispatch(id);
    await until(async () => (await runs(id))[0]?.status === 'RUNNING');
    await dispatch(id);
    await app.dataSource.query('UPDATE automation_runs SET cost = 3');
    await call('post', `/runs/${(await runs(id))[1]?.id}/cancel`).expect(200);
    await app.dataSource.query('UPDATE automation_runs SET cost = 3');
    await until(async () => (await runs(id))[0]?.status === 'CANCELLED');
    expect((await runs(id))[0]).toMatchObject({
      error_detail: expect.stringContaining('max_budget_per_month'),
      conversation_id: null,
    });
  });

  it('is stopped at its timeout', async () => {
    const id = await create({ timeout: 60 });
    backend.gate.close();
    await dispatch(id);
    await until(async () => (await conversations()).length === 1);
    await app.dataSource.query(`UPDATE automation_runs SET started_at = now() - interval '2 minutes'`);
    expect((await reached(id, 'FAILED')).error_detail).toContain('longer than 60 s');
  });

  it('goes when it is old', async () => {
    const id = await create();
    await failed(id);
    expect(await app.dataSource.query('SELECT work FROM automation_runs')).toEqual([
      { work: { timeout: null } },
    ]);
    expect(await runs(id)).toHaveLength(1);
    await app.dataSource.query(`UPDATE automation_runs SET created_at = now() - interval '2 hours'`);
    await app.app.get(RunSettler).now();
    expect(await runs(id)).toEqual([]);
  });
});

describe('an automation that is busy', () => {
  beforeEach(() => backend.gate.close());

  async function busy(concurrency: object, members: object = {}): Promise<string> {
    const id = await create({ concurrency, ...members });
    await dispatch(id);
    await until(async () => (await runs(id))[0]?.status === 'RUNNING');
    return id;
  }

  it('queues further runs, and begins them one after the other', async () => {
    const id = await busy({ limit: 1, when_busy: 'queue' });
    await dispatch(id);
    await dispatch(id);
    expect((await runs(id)).map(({ status }) => status)).toEqual(['PENDING', 'PENDING', 'RUNNING']);
    backend.gate.open();
    await until(async () => {
      await settle(id);
      return (await runs(id)).every(({ status }) => status === 'COMPLETED');
    });
    expect(await conversations()).toHaveLength(3);
  });

  it('begins one that is made in the moment in which the one before ends', async () => {
    const id = await busy({ limit: 1, when_busy: 'queue' });
    const [first] = await runs(id);
    // Its worker would wait for the end, too.
    await until(async () => (await app.dataSource.query(STARTED, [first?.id])).length === 1);
    // Holds back the commit of the end.
    await app.dataSource.query(`
      CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(4217); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER held AFTER UPDATE ON automation_runs DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.status = 'CANCELLED') EXECUTE FUNCTION hold()`);
    const holder = app.dataSource.createQueryRunner();
    await holder.startTransaction();
    const waiting = async (): Promise<number> => {
      const [row] = await app.dataSource.query(
        `SELECT count(*)::int AS count FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return row.count;
    };
    try {
      await holder.query('SELECT pg_advisory_xact_lock(4217)');
      const ended = call('post', `/runs/${first?.id}/cancel`).then(({ status }) => status);
      await until(async () => (await waiting()) === 1);
      const made = dispatch(id);
      await until(async () => {
        const [{ done }] = await app.dataSource.query(
          'SELECT count(*)::int AS done FROM automation_runs WHERE automation_id = $1 AND due_at > now() AND leased_by IS NULL',
          [id],
        );
        return done === 2 || (await waiting()) === 2;
      });
      await holder.commitTransaction();
      expect(await ended).toBe(200);
      await made;
    } finally {
      await holder.release();
      await app.dataSource.query('DROP FUNCTION hold CASCADE');
    }
    await until(async () => (await runs(id))[0]?.status === 'RUNNING');
  });

  it('replaces runs by newer ones', async () => {
    const id = await busy({ when_busy: 'replace' });
    const { id: newer } = await dispatch(id);
    expect(await runs(id)).toMatchObject([
      { id: newer },
      { status: 'CANCELLED', error_detail: 'A newer run has replaced it.' },
    ]);
    await until(async () => (await runs(id))[0]?.status === 'RUNNING');
  });

  it('has runs that wait while these take little', async () => {
    const id = await busy({ when_busy: 'queue' });
    const { id: waiting } = await dispatch(id);
    const [{ bytes }] = await app.dataSource.query(
      `WITH large AS (
         UPDATE automation_runs SET work = work || jsonb_build_object('prompt', (
           SELECT repeat(string_agg(gen_random_uuid()::text, ''), 100) FROM generate_series(1, 3000)))
         WHERE id = $1 RETURNING work)
       SELECT pg_column_size(work) AS bytes FROM large`,
      [waiting],
    );
    expect(bytes).toBeGreaterThan(10_000_000);
    expect(await dispatch(id)).toMatchObject({
      status: 'SKIPPED',
      error_detail: expect.stringContaining('10 MB'),
    });
  });

  it('has no more runs within a day than it may', async () => {
    const id = await busy({ when_busy: 'queue' }, { max_runs_per_day: 2 });
    await dispatch(id);
    const { id: skipped } = await dispatch(id);
    expect(await dispatch(id)).toMatchObject({ status: 'SKIPPED' });
    const [kept] = await app.dataSource.query('SELECT status, work FROM automation_runs WHERE id = $1', [
      skipped,
    ]);
    expect(kept).toEqual({ status: 'SKIPPED', work: { timeout: null } });
    const { body } = await call('post', `/${id}/dispatch`).expect(429);
    expect(body).toMatchObject({ code: 'rate_limited', detail: expect.stringContaining('max_runs_per_day') });
  });
});

describe('a schedule', () => {
  function advance(milliseconds: number): void {
    app.clock.advance(milliseconds);
    second.clock.advance(milliseconds);
  }

  async function look(): Promise<void> {
    await Promise.all([app, second].map(({ app: nest }) => nest.get(ScheduleWorker).now()));
  }

  async function pass(milliseconds: number, id: string, expected: number): Promise<void> {
    advance(milliseconds);
    await look();
    expect(await runs(id)).toHaveLength(expected);
  }

  beforeEach(() => {
    backend.gate.close();
    // The clocks go on with the machine's: no minute ends while a test looks.
    advance(A_MINUTE - (app.clock.now() % A_MINUTE));
  });

  it('makes one run a minute, however many replicas look', async () => {
    const id = await create({ trigger: EVERY_MINUTE });
    await app.app.get(ScheduleWorker).now();
    expect(await runs(id)).toEqual([]);
    await pass(A_MINUTE, id, 1);
    expect(await runs(id)).toMatchObject([{ trigger_source: 'cron' }]);
    await pass(A_MINUTE, id, 2);
  });

  it('makes one run for all minutes that were missed', async () => {
    const id = await create({ trigger: EVERY_MINUTE });
    await pass(100 * A_MINUTE, id, 1);
    const { body } = await call('get', `/${id}`).expect(200);
    expect(new Date(body.next_run_at).getTime()).toBeGreaterThan(app.clock.now());
  });

  it('makes the run that is due although the automation is renamed just then', async () => {
    const id = await create({ trigger: EVERY_MINUTE });
    advance(A_MINUTE);
    await call('patch', `/${id}`).send({ name: 'Renamed', trigger: EVERY_MINUTE }).expect(200);

    await pass(0, id, 1);
  });

  it('rests while the automation is inactive, and does not make up for it', async () => {
    const id = await create({ trigger: EVERY_MINUTE, state: 'INACTIVE' });
    await pass(10 * A_MINUTE, id, 0);
    await call('patch', `/${id}`).send({ state: 'ACTIVE' }).expect(200);
    await app.app.get(ScheduleWorker).now();
    expect(await runs(id)).toEqual([]);
    await pass(A_MINUTE, id, 1);
  });
});
