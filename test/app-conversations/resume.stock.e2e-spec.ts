import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { initialTitle } from '../../src/v1/app-conversations/conversation.entity.js';
import { ConversationResumeWorker } from '../../src/v1/app-conversations/conversation-resume.worker.js';
import { SandboxEvents } from '../../src/v1/sandboxes/sandbox-events.js';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { ConversationRows, FOLLOWED_ELSEWHERE } from '../support/conversation-rows.js';
import type { TestUser } from '../support/create-test-app.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

/** An agent server with the published routes only, which generates no titles on request. */
describe('conversations of the stock agent server', () => {
  const app = useTestApp();
  const rows = new ConversationRows(app);
  let user: TestUser;
  let agent: Awaited<ReturnType<typeof FakeConversationServer.start>>;
  let sandbox: Sandbox;

  beforeEach(async () => {
    agent = await FakeConversationServer.start();
    user = await app.createUser();
    sandbox = await rows.sandbox(user.id, {
      key: agent.key,
      address: agent.address,
      specId: 'stock',
      generation: 2,
    });
  });

  afterEach(async () => {
    await agent.close();
  });

  const resume = (): Promise<void> => app.app.get(ConversationResumeWorker).resume(sandbox.id);
  const change = async (table: string, column: string, value: unknown, id: string): Promise<void> => {
    await app.dataSource.query(`UPDATE ${table} SET ${column} = $1 WHERE id = $2`, [value, id]);
  };
  const begin = (seen: 'running' | 'paused'): ReturnType<ConversationRows['conversation']> =>
    rows.conversation(user.id, { sandboxId: sandbox.id }, { ...FOLLOWED_ELSEWHERE, executionStatus: seen });
  const of = async <T>(column: string, id: string): Promise<T | undefined> => {
    const [row] = await app.dataSource.query<{ value: T }[]>(
      `SELECT ${column} AS value FROM app_conversations WHERE id = $1`,
      [id],
    );
    return row?.value;
  };

  it.each([
    ['run when they were running', 'running', 'error', true],
    ['stay paused when they were paused', 'paused', 'paused', false],
    ['stay finished when they had finished after all', 'running', 'finished', false],
  ] as const)('%s after the sandbox was resumed', async (_name, seen, made, runs) => {
    const { id } = await begin(seen);
    agent.open(id, { execution_status: made });

    await resume();

    expect(agent.calls).toEqual(runs ? [`POST /api/conversations/${id}/run`] : []);
    expect(await of('sandbox_generation', id)).toBe(2);
  });

  it('run at the next attempt, whatever status the server reports by then', async () => {
    await change('sandboxes', 'address', 'http://127.0.0.1:1', sandbox.id);
    const { id } = await begin('running');
    agent.open(id, { execution_status: 'error' });
    await resume();
    expect(await of('sandbox_generation', id)).toBe(1);
    await change('followed_conversations', 'execution_status', 'error', id);
    await change('sandboxes', 'address', agent.address, sandbox.id);

    await resume();

    expect(agent.calls).toEqual([`POST /api/conversations/${id}/run`]);
  });

  it('do not hold up the start of a sandbox while the server hangs', async () => {
    const { id } = await begin('running');
    agent.open(id, { execution_status: 'error' });
    const { promise: gate, resolve } = Promise.withResolvers<void>();
    agent.gate = gate;

    await app.app.get(SandboxEvents).emit('running', sandbox.id);
    expect(agent.calls).toEqual([]);
    resolve();

    await until(() => agent.calls.length > 0);
  });

  it('do not hold up each other when one of them cannot be resumed', async () => {
    const [first, second] = [await begin('running'), await begin('running')];
    for (const { id } of [first, second]) {
      agent.open(id, { execution_status: id === second.id ? 'of no kind' : 'error' });
    }

    await resume();

    expect(agent.calls).toEqual([`POST /api/conversations/${first.id}/run`]);
  });

  it('get titles from their first message, which reach the server', async () => {
    const { id } = await rows.conversation(user.id, { sandboxId: sandbox.id, sandboxGeneration: 2 });
    await change('app_conversations', 'title', initialTitle(id), id);
    agent.open(id);
    const say = (text: string): string =>
      agent.append(id, { source: 'user', llm_message: { role: 'user', content: [{ type: 'text', text }] } });
    say('Make a file.');
    say('And a second one.');

    await until(() => agent.calls.includes(`PATCH /api/conversations/${id}`));

    expect(await of('title', id)).toBe('Make a file.');
  });
});
