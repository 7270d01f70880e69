import { beforeEach, describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import { RemovedUsersWorker } from '../../src/auth/removed-users.worker.js';
import { AwaitSandboxStep } from '../../src/v1/app-conversations/start/await-sandbox.step.js';
import { BeginConversationStep } from '../../src/v1/app-conversations/start/begin-conversation.step.js';
import { CredentialsBuilder } from '../../src/v1/app-conversations/agent-request/credentials.builder.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { untilBlocked } from '../support/until-blocked.js';
import { useTestApp } from '../support/use-test-app.js';

describe('a user who is removed', () => {
  const app = useTestApp();
  const rows = new ConversationRows(app);
  let user: TestUser;
  let id: string;
  let hex: string;
  let sandboxId: string;

  beforeEach(async () => {
    user = await app.createUser();
    sandboxId = (await rows.sandbox(user.id)).id;
    ({ id, hex } = await rows.conversation(user.id, { sandboxId }, FOLLOWED_ELSEWHERE));
    await rows.startTask(user.id, { appConversationId: id, status: 'READY', requestSecrets: 'record' });
  });

  const remove = (query = ''): request.Test => app.as(app.admin).delete(`/api/v1/users/${user.id}${query}`);
  const shown = async (by: TestUser): Promise<unknown[]> =>
    (await app.as(by).get(`/api/v1/app-conversations?ids=${hex}`).expect(200)).body;
  const sandbox = async (): Promise<unknown> =>
    (
      await app.dataSource.query<unknown[]>(
        'SELECT s.status, s.status_detail, u.name, u.removed_at FROM sandboxes s JOIN users u ON u.id = s.user_id WHERE s.id = $1',
        [sandboxId],
      )
    )[0];
  const emails = async (): Promise<string[]> => {
    const { body } = await app.as(app.admin).get('/api/v1/users?limit=100').expect(200);
    return body.items.map(({ email }: { email: string }) => email);
  };

  it('leaves paused sandboxes for a day, which nobody has a key to', async () => {
    const before = await emails();
    await remove().expect(204);

    expect(await sandbox()).toMatchObject({
      status: 'PAUSING',
      status_detail: 'Paused because its user was removed.',
      removed_at: expect.any(Date),
    });
    expect(before).toContain(Object(await sandbox()).name);
    await app.as(user).get('/api/v1/users/me').expect(401);
    const listed = await emails();
    expect(listed).not.toContain(Object(await sandbox()).name);
    expect(listed.filter((email) => email.endsWith('.invalid'))).toEqual([]);

    const [kept] = await app.dataSource.query<[{ user_id: string }]>(
      'SELECT user_id FROM sandboxes WHERE id = $1',
      [sandboxId],
    );
    const standIn = `/api/v1/users/${kept.user_id}`;
    await app.as(app.admin).patch(standIn, { is_admin: true }).expect(404);
    await app.as(app.admin).post(`${standIn}/disable`).expect(404);

    const worker = app.app.get(RemovedUsersWorker);
    await worker.work();
    expect(await sandbox()).toBeDefined();
    app.clock.advance(86_401_000);
    await worker.work();
    expect(await sandbox()).toBeUndefined();
  });

  it('has nothing done in their name by an administrator, who reads what is left', async () => {
    await app.dataSource.query("UPDATE sandboxes SET status = 'PAUSED' WHERE id = $1", [sandboxId]);
    await remove().expect(204);
    await app.dataSource.query("UPDATE sandboxes SET status = 'PAUSED' WHERE id = $1", [sandboxId]);

    const sent = await app
      .as(app.admin)
      .post(`/api/v1/app-conversations/${hex}/send-message`, { content: [{ text: 'go on' }] })
      .expect(409);
    expect(sent.body.detail).toContain('has been removed');
    await app.as(app.admin).post(`/api/v1/sandboxes/${sandboxId}/resume`).expect(409);
    expect(await sandbox()).toMatchObject({ status: 'PAUSED' });
    await app.as(app.admin).get(`/api/v1/conversation/${hex}/events/search`).expect(200);
  });

  it('leaves all to the one that is named, who begins with credentials of their own', async () => {
    const heir = await app.createUser();
    await app
      .as(user)
      .post('/api/settings', { llm_model: 'gpt-5', llm_api_key: 'key-of-the-removed' })
      .expect(200);
    await remove(`?hand_over_to=${heir.id}`).expect(204);

    expect(await shown(heir)).toMatchObject([{ id: hex, sandbox_id: sandboxId }]);
    expect(await sandbox()).toMatchObject({ status: 'PAUSING', removed_at: null });
    const credentials = await app.app.get(CredentialsBuilder).build({ id, userId: heir.id });
    expect(JSON.stringify(credentials)).not.toContain('key-of-the-removed');
    const [task] = await app.dataSource.query<unknown[]>(
      'SELECT user_id, request_secrets FROM app_conversation_start_tasks WHERE app_conversation_id = $1',
      [id],
    );
    expect(task).toEqual({ user_id: heir.id, request_secrets: null });
  });

  it('leaves nothing that goes on by itself with the credentials of the one that is named', async () => {
    const heir = await app.createUser();
    await app.dataSource.query("UPDATE sandboxes SET egress_setup = 'open' WHERE id = $1", [sandboxId]);
    const waiting = await rows.startTask(user.id, { sandboxId, status: 'WAITING_FOR_SANDBOX' });
    const begun = await rows.conversation(user.id, { sandboxId }, FOLLOWED_ELSEWHERE);
    const beginning = { appConversationId: begun.id, sandboxId, status: 'STARTING_CONVERSATION' } as const;
    const starting = await rows.startTask(user.id, beginning);
    await app.dataSource.query(
      `INSERT INTO followed_pull_requests (conversation_id, user_id, wishes, state, next_look_at)
       VALUES ($1, $2, '{"until": "green", "on": ["checks"], "max_rounds": 5}', 'watching', now())`,
      [id, user.id],
    );
    await app.dataSource.query(
      `INSERT INTO pending_messages (id, user_id, conversation_id, position, content)
       VALUES (gen_random_uuid(), $2, $1, 1, '[]')`,
      [id, user.id],
    );

    await remove(`?hand_over_to=${heir.id}`).expect(204);

    const { body: tasks } = await app
      .as(heir)
      .get(`/api/v1/app-conversations/start-tasks?ids=${waiting.hex}&ids=${starting.hex}`)
      .expect(200);
    const ended = { status: 'ERROR', detail: 'Its user was removed before it had begun.' };
    expect(tasks).toMatchObject([ended, ended]);
    const { body: shownTo } = await app
      .as(heir)
      .get(`/api/v1/app-conversations?ids=${begun.hex}&ids=${hex}`)
      .expect(200);
    expect(shownTo).toMatchObject([null, { follow: { state: 'stopped', reason: 'Its user was removed.' } }]);
    const [left] = await app.dataSource.query<unknown[]>(
      `SELECT (SELECT count(*)::int FROM pending_messages WHERE conversation_id = $1) AS messages,
         (SELECT next_look_at FROM followed_pull_requests WHERE conversation_id = $1) AS look,
         (SELECT egress_setup FROM sandboxes WHERE id = $2) AS setup`,
      [id, sandboxId],
    );
    expect(left).toEqual({ messages: 0, look: null, setup: 'closing' });
  });

  it('is removed after a start that is about to end, from which it keeps no sandbox', async () => {
    const heir = await app.createUser();
    const { id: startId } = await rows.startTask(user.id, { sandboxId, status: 'PREPARING_REPOSITORY' });
    const { removing } = await app.dataSource.transaction(async (manager) => {
      await manager.query('SELECT FROM app_conversation_start_tasks WHERE id = $1 FOR UPDATE', [startId]);
      const answer = remove(`?hand_over_to=${heir.id}`).then(({ status }) => status);
      await untilBlocked(app.dataSource);
      await manager.query('SELECT FROM sandboxes WHERE id = $1 FOR UPDATE NOWAIT', [sandboxId]);
      return { removing: answer };
    });

    expect(await removing).toBe(204);
  });

  it.each<[string, () => Promise<[id: string, begin: () => Promise<unknown>]>]>([
    [
      'a start that makes its sandbox',
      async () => {
        const task = await rows.startTask(user.id, { status: 'WAITING_FOR_SANDBOX' });
        return [task.id, async () => app.app.get(AwaitSandboxStep)['create'](task)];
      },
    ],
    [
      'a start that begins its conversation',
      async () => {
        const task = await rows.startTask(user.id, { sandboxId, status: 'STARTING_CONVERSATION' });
        const begun = { model: null, baseUrl: '', workingDir: '.', agent: null };
        return [task.id, async () => app.app.get(BeginConversationStep)['store'](task, [], begun)];
      },
    ],
  ])('does not wait for %s, which waits for that', async (_what, prepare) => {
    const [startId, begin] = await prepare();
    const begun = await app.dataSource.transaction(async (manager) => {
      await manager.query('SELECT FROM users WHERE id = $1 FOR UPDATE', [user.id]);
      const work = begin().catch(() => undefined);
      await untilBlocked(app.dataSource);
      const lock = 'SELECT FROM app_conversation_start_tasks WHERE id = $1 FOR UPDATE NOWAIT';
      expect(await manager.query(lock, [startId])).toHaveLength(1);
      return [work];
    });
    await Promise.all(begun);
  });

  it.each<[string, () => string]>([
    ['nobody', () => '3f9b7f0e-8a4b-4d61-9a63-1a2b3c4d5e6f'],
    ['the removed user', () => user.id],
  ])('is not removed where %s is to have it', async (_, heir) => {
    const { body } = await remove(`?hand_over_to=${heir()}`).expect(422);
    expect(body.detail).toMatchObject([{ loc: ['query', 'hand_over_to'] }]);
    expect(await shown(user)).toMatchObject([{ id: hex }]);
  });
});
