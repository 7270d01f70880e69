import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { LeasedWork } from '@slipway/database/leased-worker.js';
import { AbandonedStartsReaper } from '../../src/v1/app-conversations/start/start.worker.js';
import type { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { insertSandboxRow } from '../support/sandbox-rows.js';
import { StartsClient } from '../support/starts-client.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

/** The host of the sandboxes that `insertSandboxRow` inserts. */
const HOST = 'a-host-of-nobody';
const GRACE_MS = 60_000;

describe('a start whose host is lost', () => {
  const app = useTestApp();
  let client: StartsClient;
  let reaper: AbandonedStartsReaper;

  beforeAll(() => {
    reaper = app.app.get(AbandonedStartsReaper);
    app.clock.stop();
  });

  beforeEach(async () => {
    // The sweep forgets the hosts that earlier tests lost.
    await app.dataSource.query('DELETE FROM app_conversation_start_tasks');
    await app.dataSource.query('DELETE FROM sandbox_hosts WHERE id = $1', [HOST]);
    await reaper.now();
    client = new StartsClient(app, await app.createUser());
  });

  /** A start in a sandbox of the host; no process takes it. */
  const startThere = async (): Promise<StartTask> => {
    const { id } = await insertSandboxRow(app.dataSource, client.user.id, 'PAUSED');
    return client.start({ sandbox_id: id });
  };
  /** As if nothing had happened to it for a while, by the clock of the database. */
  const age = async ({ id }: StartTask, seconds = 61): Promise<void> => {
    await app.dataSource.query(
      `UPDATE app_conversation_start_tasks SET updated_at = now() - make_interval(secs => $2) WHERE id = $1`,
      [id, seconds],
    );
  };
  const seen = async (secondsAgo: number): Promise<void> => {
    await app.dataSource.query(
      `INSERT INTO sandbox_hosts (id, address, seen_at) VALUES ($1, NULL, now() - make_interval(secs => $2))
       ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at`,
      [HOST, secondsAgo],
    );
  };
  const sweepAfter = async (milliseconds: number): Promise<void> => {
    app.clock.advance(milliseconds);
    await reaper.now();
  };
  const waiting = async (): Promise<number | undefined> =>
    (await app.app.get(LeasedWork).backlogs()).get('conversation-start')?.due;
  const statusOf = async ({ id }: StartTask): Promise<string> => (await client.read(id)).status;

  it('ends in ERROR with that cause', async () => {
    const task = await startThere();
    await age(task);
    await reaper.now();
    expect([await statusOf(task), await waiting()]).toEqual(['WORKING', 1]);

    await sweepAfter(GRACE_MS);

    expect(await client.read(task.id)).toMatchObject({
      status: 'ERROR',
      detail: `The start was abandoned: no process of its host ${HOST} is running.`,
    });
    expect(await client.sandboxes()).toMatchObject([{ id: task.sandboxId, status: 'PAUSED' }]);
    // Or an alert of starts that wait would go on for ever.
    expect(await waiting()).toBe(0);
  });

  it('has the sandbox removed that was created for it', async () => {
    const task = await startThere();
    await app.dataSource.query(
      `UPDATE app_conversation_start_tasks SET status = 'WAITING_FOR_SANDBOX',
         request = jsonb_set(request, '{sandbox_id}', 'null') WHERE id = $1`,
      [task.id],
    );
    await age(task);
    await reaper.now();
    await sweepAfter(GRACE_MS);

    expect(await statusOf(task)).toBe('ERROR');
    expect(await client.sandboxes()).toMatchObject([{ id: task.sandboxId, status: 'DELETING' }]);
  });

  it('is left alone for a minute after the host was seen', async () => {
    const task = await startThere();
    await age(task, 3600);
    await seen(20);
    await reaper.now();
    await sweepAfter(GRACE_MS);
    expect(await statusOf(task)).toBe('WORKING');

    await seen(61);
    await reaper.now();
    await sweepAfter(GRACE_MS);
    expect(await statusOf(task)).toBe('ERROR');
  });

  it('is left alone when the host was restarted', async () => {
    const task = await startThere();
    await age(task, 3600);
    // A host that stops deletes its row.
    await reaper.now();
    await seen(0);
    await sweepAfter(GRACE_MS);
    app.clock.advance(GRACE_MS);
    await app.dataSource.query('DELETE FROM sandbox_hosts WHERE id = $1', [HOST]);
    await reaper.now();
    expect(await statusOf(task)).toBe('WORKING');

    await sweepAfter(GRACE_MS - 10_000);
    expect(await statusOf(task)).toBe('WORKING');
  });

  it('is left alone for a minute after its last change', async () => {
    const old = await startThere();
    await age(old);
    const young = await startThere();
    await age(young, 20);
    await reaper.now();
    await sweepAfter(GRACE_MS);

    expect([await statusOf(old), await statusOf(young)]).toEqual(['ERROR', 'WORKING']);
  });

  it.each([
    ['another process has just ended it', `status = 'READY'`, 'READY'],
    ['another process has just taken it up', 'attempt = attempt + 1', 'WORKING'],
  ])('is left alone when %s', async (_case, change, left) => {
    const task = await startThere();
    await age(task);
    await reaper.now();

    let sweeping = Promise.resolve();
    await app.dataSource.transaction(async (manager) => {
      await manager.query(`UPDATE app_conversation_start_tasks SET ${change} WHERE id = $1`, [task.id]);
      sweeping = sweepAfter(GRACE_MS);
      await untilBlocked(app.dataSource);
    });
    await sweeping;

    expect(await statusOf(task)).toBe(left);
  });
});
