import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { parseHexId } from '../src/common/hex-id.js';
import { jsonNumber } from '../src/common/json-access.js';
import type { StartTask } from '../src/v1/app-conversations/start-task.entity.js';
import { InProcessSandboxBackend } from './fakes/in-process-sandbox-backend.js';
import { createTestApp, type TestApp, type TestUser } from './support/create-test-app.js';
import { StartsClient } from './support/starts-client.js';
import { until } from './support/until.js';

const CONVERSATIONS = '/api/v1/app-conversations';
/** Longer than the sandbox of a conversation that has just begun is held. */
const HOLD_MS = 121_000;

describe('a conversation that needs one sandbox more than may run', () => {
  let backend: InProcessSandboxBackend;
  let app: TestApp;
  let user: TestUser;
  let client: StartsClient;

  async function begin(environment: Record<string, string>) {
    backend = new InProcessSandboxBackend();
    app = await createTestApp({ MAX_RUNNING_SANDBOXES: '1', ...environment }, undefined, {
      sandboxBackend: backend,
    });
  }

  async function stop() {
    await app.close();
    await backend.close();
  }

  beforeEach(async () => {
    user = await app.createUser();
    client = new StartsClient(app, user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model' });
  });

  const post = (body: object = {}, headers: Record<string, string> = {}): request.Test =>
    request(app.url)
      .post(CONVERSATIONS)
      .set({ ...user.headers, ...headers })
      .send(body);
  const started = async (body: object = {}): Promise<StartTask> => {
    const answer = await post(body).expect(200);
    return client.reached({ id: parseHexId(answer.body.id) ?? '' }, 'READY');
  };
  const detailOf = async (task: StartTask): Promise<string | null> => {
    const path = `${CONVERSATIONS}/start-tasks?ids=${task.id}`;
    return (await request(app.url).get(path).set(user.headers).expect(200)).body[0].detail;
  };
  const statusOf = async (sandboxId: string): Promise<string | undefined> =>
    (await client.sandboxes()).find(({ id }) => id === sandboxId)?.status;
  const pause = async (sandboxId: string): Promise<void> => {
    await request(app.url).post(`/api/v1/sandboxes/${sandboxId}/pause`).set(user.headers).expect(200);
    await until(async () => (await statusOf(sandboxId)) === 'PAUSED');
  };
  /** Nothing goes on in its sandbox any more, and has not for long enough to be seen. */
  const rested = async ({ sandboxId }: StartTask): Promise<void> => {
    const server = backend.boxes.get(sandboxId)?.server;
    await until(async () => (jsonNumber(await server?.client.get('/server_info'), 'idle_time') ?? 0) > 0.1);
    app.clock.advance(HOLD_MS);
  };

  describe('with pause_oldest_idle', () => {
    beforeAll(() => begin({ SANDBOX_WAIT_SECONDS: '100000' }));
    afterAll(stop);

    const note = ({ sandboxId }: StartTask): string =>
      `Sandbox ${sandboxId} was idle for longest, and was paused to make room.`;

    it('names the one that was paused, from the first answer on', async () => {
      const first = await started();
      await rested(first);
      const { body } = await post().expect(200);

      expect(body.detail).toBe(note(first));
      const second = await client.reached({ id: parseHexId(body.id) ?? '' }, 'READY');
      expect(await detailOf(second)).toBe(note(first));
    });

    it('names the one that was paused to resume its sandbox', async () => {
      const first = await started();
      await pause(first.sandboxId);
      const second = await started();
      await rested(second);

      const third = await started({ sandbox_id: first.sandboxId });
      expect(await detailOf(third)).toBe(note(second));
    });

    it('names the one that was paused after it waited for a place', async () => {
      const first = await started();
      const second = await client.start();
      await until(async () => (await client.read(second.id)).detail !== null);
      await rested(first);

      expect(await detailOf(await client.reached(second, 'READY'))).toBe(note(first));
    });
  });
});
