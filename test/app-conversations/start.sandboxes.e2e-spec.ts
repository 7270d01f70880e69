import { afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import { descending } from '@slipway/common/compare.js';
import { jsonText } from '@slipway/common/json-access.js';
import type { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { SandboxReconciler } from '../../src/v1/sandboxes/lifecycle/sandbox.reconciler.js';
import { SandboxesService } from '../../src/v1/sandboxes/sandboxes.service.js';
import { SandboxRepository } from '../../src/v1/sandboxes/sandbox.repository.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { say, StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const SANDBOXES = '/api/v1/sandboxes';
const MODEL = { llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model' };

describe('starts and the sandboxes they need', () => {
  const backend = new InProcessSandboxBackend();
  const app = useTestApp(
    { MAX_RUNNING_SANDBOXES: '1', SANDBOX_WAIT_SECONDS: '600' },
    { sandboxBackend: backend },
  );
  const rows = new ConversationRows(app);
  let user: TestUser;
  let client: StartsClient;

  const begin = async (): Promise<void> => {
    user = await app.createUser();
    client = new StartsClient(app, user);
    await client.settings(MODEL);
  };

  beforeEach(begin);

  afterEach(() => {
    backend.gate.open();
    backend.failure = null;
  });

  const act = (sandboxId: string, action: 'pause' | 'resume'): request.Test =>
    request(app.url).post(`${SANDBOXES}/${sandboxId}/${action}`).set(user.headers).expect(200);
  const statusOf = async ({ sandboxId, appConversationId }: StartTask): Promise<string | null> =>
    jsonText(
      await backend.boxes.get(sandboxId)?.server.client.get(`/api/conversations/${appConversationId}`),
      'execution_status',
    );
  const sandboxStatus = async (sandboxId: string): Promise<string | undefined> =>
    (await client.sandboxes()).find(({ id }) => id === sandboxId)?.status;
  /** A conversation whose agent works until it is told to pause. */
  const busy = async (): Promise<StartTask> => {
    const task = await client.reached(await client.start(say('step')), 'READY');
    await until(async () => (await statusOf(task)) === 'running');
    return task;
  };

  /** As the idle reaper and the quota do. */
  const pauseByService = async (sandboxId: string): Promise<void> => {
    expect(await app.app.get(SandboxRepository).transition(sandboxId, 'pause')).toBe(true);
  };
  const shown = async ({ appConversationId }: StartTask): Promise<{ execution_status: string | null }> => {
    const { body } = await request(app.url)
      .get(`/api/v1/app-conversations?ids=${appConversationId}`)
      .set(user.headers)
      .expect(200);
    return body[0];
  };
  const running = async (sandboxId: string): Promise<void> =>
    until(async () => (await sandboxStatus(sandboxId)) === 'RUNNING');
  const stopped = async (sandboxId: string): Promise<void> =>
    until(async () => (await sandboxStatus(sandboxId)) === 'PAUSED');
  const generation = async ({ appConversationId: id }: StartTask): Promise<number | undefined> => {
    const [row] = await app.dataSource.query<{ sandbox_generation: number }[]>(
      'SELECT sandbox_generation FROM app_conversations WHERE id = $1',
      [id],
    );
    return row?.sandbox_generation;
  };

  const send = (task: StartTask, text: string, query = ''): request.Test =>
    request(app.url)
      .post(`/api/v1/app-conversations/${task.appConversationId}/send-message${query}`)
      .set(user.headers)
      .send({ content: [{ text }] });
  const changes = (task: StartTask, query = ''): request.Test =>
    request(app.url)
      .get(`/api/v1/app-conversations/${task.appConversationId}/git/changes?path=.${query}`)
      .set(user.headers);

  it('waits for quota while all are busy, keeps no other user waiting, and takes the first that becomes free', async () => {
    const first = await busy();

    const second = await client.start();
    expect(second.sandboxMade).toBe(false);
    await until(async () => (await client.read(second.id)).detail !== null);
    expect(await client.read(second.id)).toMatchObject({
      status: 'WAITING_FOR_SANDBOX',
      detail: 'All 1 sandboxes that you may have running are in use: waiting for one to become free.',
    });
    const other = new StartsClient(app, await app.createUser());
    await other.settings(MODEL);
    await other.reached(await other.start(), 'READY');
    expect((await client.read(second.id)).status).toBe('WAITING_FOR_SANDBOX');

    await act(first.sandboxId, 'pause');
    const ready = await client.reached(second, 'READY');
    expect(ready.sandboxMade).toBe(true);
    // The quota is free before that.
    await stopped(first.sandboxId);
  });

  it('makes none where the settings let no conversation begin', async () => {
    const other = new StartsClient(app, await app.createUser());
    await other.settings({ llm_model: 'gpt-5' });
    const task = await other.start(say('say hello'));

    expect([task.sandboxMade, await other.sandboxes()]).toEqual([false, []]);
    await until(async () => (await other.read(task.id)).status === 'ERROR');
    expect((await other.read(task.id)).detail).toContain('No key is set for the model gpt-5');
    expect(await other.sandboxes()).toEqual([]);
  });

  describe('of a conversation that has ended', () => {
    let owner: [TestUser, StartsClient];
    let task: StartTask;

    beforeAll(async () => {
      await begin();
      owner = [user, client];
      task = await client.reached(await client.start(say('say hello')), 'READY');
      await finished();
    });

    beforeEach(() => {
      [user, client] = owner;
    });

    const finished = (): Promise<void> =>
      until(async () => (await shown(task)).execution_status === 'finished');

    describe('when it is paused', () => {
      beforeEach(async () => {
        await act(task.sandboxId, 'pause');
        await stopped(task.sandboxId);
      });

      it('a message resumes it, and several do so once', async () => {
        const before = (await generation(task)) ?? 0;
        const service = app.app.get(SandboxesService);
        const wake = jest.spyOn(service, 'wake');
        backend.gate.close();
        const sending = Promise.all([send(task, 'say one'), send(task, 'say two'), send(task, 'say three')]);
        await until(() => wake.mock.calls.length === 3);
        backend.gate.open();
        const sent = await sending;
        wake.mockRestore();
        expect(sent.map(({ status, body }) => [status, body])).toEqual(
          Array.from({ length: 3 }, () => [
            200,
            {
              success: true,
              sandbox_status: 'RUNNING',
              message: 'The sandbox was paused, and was resumed for it.',
            },
          ]),
        );
        expect(await sandboxStatus(task.sandboxId)).toBe('RUNNING');
        await until(async () => (await generation(task)) === before + 1);
        await finished();
        const { body } = await send(task, 'say four').expect(200);
        expect(body.message).toBeNull();
      });

      it('a look at its changes resumes it, and nothing does so for who does not want that', async () => {
        const { body } = await send(task, 'say one', '?resume=false').expect(409);
        expect(body).toMatchObject({ code: 'sandbox_not_running' });
        // What was kept of them when it stopped: the folder of this conversation is no repository.
        expect((await changes(task, '&resume=false').expect(200)).body).toEqual([]);
        expect(await sandboxStatus(task.sandboxId)).toBe('PAUSED');

        // The folder of this conversation is no repository.
        expect((await changes(task, '&resume=true')).status).not.toBe(409);
        expect(await sandboxStatus(task.sandboxId)).toBe('RUNNING');
      });

      it('a message is refused with the reason where it cannot be resumed', async () => {
        const other = await busy();
        const { body } = await send(task, 'say one').expect(429);
        expect(body.code).toBe('sandbox_limit');
        expect(await sandboxStatus(task.sandboxId)).toBe('PAUSED');
        await act(other.sandboxId, 'pause');
      });
    });

    describe('when it has failed', () => {
      const ENDED = 'Before that: Its program ended by itself (exit code 0).';
      const detail = async (): Promise<string | null | undefined> =>
        (await client.sandboxes()).find(({ id }) => id === task.sandboxId)?.status_detail;

      beforeEach(async () => {
        await act(task.sandboxId, 'resume');
        await running(task.sandboxId);
        await backend.kill(task.sandboxId);
        await app.app.get(SandboxReconciler).now();
        await until(async () => (await sandboxStatus(task.sandboxId)) === 'ERROR');
      });

      it('a message starts it again, and its detail says why', async () => {
        const { body } = await send(task, 'say one').expect(200);
        expect(body.message).toBe('The sandbox had failed, and was started again for it.');
        expect(await sandboxStatus(task.sandboxId)).toBe('RUNNING');
        expect(await detail()).toContain(
          `The sandbox had failed, and was started again for a message. ${ENDED}`,
        );
        await finished();
      });

      it('a look at its changes starts it again', async () => {
        await changes(task, '&resume=false');
        expect(await sandboxStatus(task.sandboxId)).toBe('ERROR');
        await changes(task, '&resume=true');
        expect(await detail()).toContain('was started again for its changes.');
      });

      it('another conversation starts it again', async () => {
        const another = await client.reached(
          await client.start({ ...say('say hello'), sandbox_id: task.sandboxId }),
          'READY',
        );
        expect(another.notes).toEqual([
          expect.stringContaining(
            `The sandbox had failed, and was started again for another conversation. ${ENDED}`,
          ),
        ]);
      });

      it('is tried once for each message, and the answer says what happened', async () => {
        backend.failure = 'There is no disk left.';
        const { body } = await send(task, 'say one').expect(503);
        expect(body).toMatchObject({
          code: 'sandbox_not_running',
          detail: 'The sandbox could not be started for a message: There is no disk left.',
        });
        expect(await detail()).toBe('There is no disk left.');
      });
    });
  });

  it('limits how many starts of a user wait, in a sandbox that exists or for quota', async () => {
    const { id: sandbox_id } = await rows.sandbox(user.id);
    await Promise.all(Array.from({ length: 24 }, async () => rows.startTask(user.id)));
    const inSandbox = (): request.Test =>
      request(app.url).post('/api/v1/app-conversations').set(user.headers).send({ sandbox_id });

    const answers = await Promise.all([inSandbox(), inSandbox(), inSandbox()]);

    expect(answers.map(({ status }) => status).toSorted(descending)).toEqual([429, 429, 200]);
    await expect(client.start()).rejects.toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 30 });
    await app.dataSource.query(`DELETE FROM app_conversation_start_tasks WHERE user_id = $1`, [user.id]);
  });

  describe('after a pause that the user asked for', () => {
    /** What the web client does: it resumes the sandbox a moment later, whether that has stopped or not. */
    it.each([
      ['has stopped', true],
      ['is still stopping', false],
    ])('leaves a conversation paused whose sandbox %s before the resume', async (_name, hasStopped) => {
      const task = await busy();
      await until(async () => (await shown(task)).execution_status === 'running');
      await act(task.sandboxId, 'pause');
      if (hasStopped) {
        await stopped(task.sandboxId);
      }
      await act(task.sandboxId, 'resume');

      const seen = new Set<string | null>();
      await running(task.sandboxId);
      await until(async () => {
        seen.add((await shown(task)).execution_status);
        return (await generation(task)) === 2;
      });
      seen.add((await shown(task)).execution_status);
      expect([...seen]).toEqual(['paused']);
      expect(await statusOf(task)).toBe('paused');
      const agent = backend.boxes.get(task.sandboxId)?.server.client;
      expect(await agent?.get(`/api/conversations/${task.appConversationId}`)).toMatchObject({
        agent_state: {},
      });

      await request(app.url)
        .post(`/api/v1/app-conversations/${task.appConversationId}/send-message`)
        .set(user.headers)
        .send({ content: [{ text: 'step' }], run: true })
        .expect(200);
      await until(async () => (await statusOf(task)) === 'running');
    });

    it('lets it go on after a later pause by the service', async () => {
      const task = await busy();
      await act(task.sandboxId, 'pause');
      await act(task.sandboxId, 'resume');
      await until(async () => (await generation(task)) === 2);
      await act(task.sandboxId, 'resume');
      await request(app.url)
        .post(`/api/v1/app-conversations/${task.appConversationId}/run`)
        .set(user.headers)
        .expect(200);
      await until(async () => (await statusOf(task)) === 'running');
      await pauseByService(task.sandboxId);
      await stopped(task.sandboxId);

      await act(task.sandboxId, 'resume');

      await until(async () => (await generation(task)) === 3);
      await until(async () => (await statusOf(task)) === 'running');
    });

    it('leaves it paused when the service had paused the sandbox before', async () => {
      const task = await busy();
      await pauseByService(task.sandboxId);
      await stopped(task.sandboxId);
      await act(task.sandboxId, 'pause');

      await act(task.sandboxId, 'resume');

      await until(async () => (await generation(task)) === 2);
      expect(await statusOf(task)).toBe('paused');
    });
  });

  it('tells a conversation that was running why it does not go on after a resume', async () => {
    await client.settings({ llm_base_url: 'https://models.example.com/v1' });
    const task = await busy();
    await pauseByService(task.sandboxId);
    await stopped(task.sandboxId);
    await client.settings({ llm_base_url: 'https://other.example.com/v1' });

    await act(task.sandboxId, 'resume');
    await running(task.sandboxId);

    const problems = async (): Promise<unknown[]> =>
      (await backend.boxes
        .get(task.sandboxId)
        ?.server.client.events(task.appConversationId, '&kind=ConversationErrorEvent')) ?? [];
    await until(async () => (await problems()).length > 0);
    expect(await problems()).toMatchObject([{ code: 'LlmKeyWithheld' }]);
    expect(await statusOf(task)).toBe('paused');
    // It has all credentials that there are: no retry follows, and no action waits for one.
    await until(async () => (await generation(task)) === 2);
  });

  // Last: the clock stays ahead.
  it('gives up waiting for quota', async () => {
    await busy();
    const second = await client.start();
    await until(async () => (await client.read(second.id)).detail !== null);

    app.clock.advance(601_000);

    const failed = await client.reached(second, 'ERROR');
    expect(failed.detail).toMatch(/none became free within 600 seconds\. Pause or delete one/);
  });
});
