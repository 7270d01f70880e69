import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { StartTask } from '../../src/v1/app-conversations/start-task.entity.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import { createTestApp, type TestApp, type TestUser } from '../support/create-test-app.js';
import { say, StartsClient } from '../support/starts-client.js';
import { storeProviderToken } from '../support/store-provider-token.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

const TOKEN = 'ghp_takeover4217';
/** Records that it began, and waits for a file; not for ever, in case the test is killed. */
const SETUP = 'echo run >> ran.txt\nfor _ in $(seq 10000); do [ -e go ] && break; sleep 0.02; done\n';

/** Has workers look for starts, as they do by themselves every few seconds. */
async function wakeStarts({ dataSource }: TestApp): Promise<void> {
  await dataSource.query(`SELECT pg_notify('due_starts', 'test-host')`);
}

describe('a start whose process ends', () => {
  let database: TestDatabase;
  let backend: InProcessSandboxBackend;
  let git: GitHttpServer;
  let first: TestApp;
  let second: TestApp | null;
  let user: TestUser;
  let client: StartsClient;

  const replica = (): Promise<TestApp> =>
    createTestApp({ GITHUB_CLONE_URL: git.origin }, database.url, { sandboxBackend: backend });

  beforeAll(async () => {
    git = await startGitHttpServer(`x-access-token:${TOKEN}`);
    await git.commit('octo/app', 'main', { '.openhands/setup.sh': SETUP });
  });

  beforeEach(async () => {
    database = await createTestDatabase();
    backend = new InProcessSandboxBackend();
    first = await replica();
    second = null;
    user = first.user;
    client = new StartsClient(first, user);
    await client.settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-model' });
    await storeProviderToken(first, user, 'github', TOKEN);
  });

  afterEach(async () => {
    git.gate.open();
    backend.gate.open();
    await Promise.all([first.close(), second?.close()]);
    await backend.close();
    await database.drop();
  });

  afterAll(async () => {
    await git.close();
  });

  /** The folder of the clone; it may not be there yet. */
  const clone = (sandboxId: string): string =>
    path.join(backend.boxes.get(sandboxId)?.server.workspace ?? '', 'app');
  const runs = async (sandboxId: string): Promise<string> =>
    readFile(path.join(clone(sandboxId), 'ran.txt'), 'utf8').catch(() => '');

  it('goes on in another process from wherever it was, and no finished step is repeated', async () => {
    const start = (): Promise<StartTask> =>
      client.start({ selected_repository: 'octo/app', ...say('say hello') });
    const inScript = await start();
    await client.reached(inScript, 'RUNNING_SETUP_SCRIPT');
    await until(async () => (await runs(inScript.sandboxId)) !== '');
    git.gate.close();
    const inClone = await start();
    await client.reached(inClone, 'PREPARING_REPOSITORY');
    backend.gate.close();
    const inSandbox = await start();
    await client.reached(inSandbox, 'WAITING_FOR_SANDBOX');

    const closing = first.close();
    // A process that stops waits for the sandbox that it is starting.
    backend.gate.open();
    await closing;
    second = await replica();
    git.gate.open();
    client = new StartsClient(second, user);
    const tasks = [inScript, inClone, inSandbox];
    for (const task of tasks) {
      await client.reached(task, 'RUNNING_SETUP_SCRIPT');
      await until(async () => (await runs(task.sandboxId)) !== '');
      await writeFile(path.join(clone(task.sandboxId), 'go'), '');
      expect((await client.reached(task, 'READY')).attempt).toBe(2);
      // The second worker waited for the script that the first one had begun.
      expect(await runs(task.sandboxId)).toBe('run\n');
    }
    expect((await client.conversations()).map(({ id }) => id).toSorted()).toEqual(
      tasks.map(({ appConversationId }) => appConversationId).toSorted(),
    );
  });

  it('is left alone by a worker that was taken for dead', async () => {
    const task = await client.start({ selected_repository: 'octo/app' });
    await client.reached(task, 'RUNNING_SETUP_SCRIPT');
    await until(async () => (await runs(task.sandboxId)) !== '');

    // As if the process had stood still for a while; it goes on all the same.
    second = await replica();
    second.clock.advance(3_600_000);
    await until(async () => {
      await wakeStarts(first);
      return (await client.read(task.id)).attempt === 2;
    });
    await writeFile(path.join(clone(task.sandboxId), 'go'), '');

    const ready = await client.reached(task, 'READY');
    expect(ready.attempt).toBe(2);
    expect(await runs(task.sandboxId)).toBe('run\n');
  });

  it('creates one conversation and sends its message once, and ends in ERROR when every attempt failed', async () => {
    const task = await client.start(say('say hello'));
    const ready = await client.reached(task, 'READY');
    const repeatLastStep = async (attempts: number): Promise<void> => {
      await first.dataSource.query(
        `UPDATE app_conversation_start_tasks SET status = 'STARTING_CONVERSATION', due_at = now(), leased_by = NULL,
           leased_until = NULL, attempts = $2 WHERE id = $1`,
        [task.id, attempts],
      );
      await wakeStarts(first);
    };
    await repeatLastStep(0);
    await client.reached(task, 'READY');

    const server = backend.boxes.get(ready.sandboxId)?.server;
    const page = await server?.client.get(
      `/api/conversations/${task.appConversationId}/events/search?kind=MessageEvent`,
    );
    expect(JSON.stringify(page).split('say hello').length - 1).toBe(1);
    expect(await client.conversations()).toHaveLength(1);

    await repeatLastStep(4);
    const failed = await client.reached(task, 'ERROR');
    expect(failed.detail).toBe(
      'The start was given up after several attempts. The processes that worked on it ended before it was done.',
    );
    expect(await client.conversations()).toEqual([]);
  });
});
