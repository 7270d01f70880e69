import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import request from 'supertest';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { EventSource } from '../support/event-source.js';
import { insertRunningSandbox } from '../support/followed-logs.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const REFUSED = {
  code: 'LlmAuthenticationFailed',
  detail: "The model's provider answered 401: Incorrect API key provided.",
};

const service = useTestApp();
let agent: FakeConversationServer & { address: string };
let id: string;
let hex: string;

beforeEach(async () => {
  agent = await FakeConversationServer.start();
  const sandboxId = await insertRunningSandbox(service, service.user.id, agent);
  ({ id, hex } = await new ConversationRows(service).conversation(service.user.id, { sandboxId }));
  agent.open(id);
});

afterEach(async () => {
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
  await agent.close();
});

interface Shown {
  execution_status: string | null;
  error: { code: string; detail: string } | null;
}

async function shown(): Promise<Shown> {
  const { body } = await request(service.url)
    .get(`/api/v1/app-conversations?ids=${hex}`)
    .set(service.user.headers)
    .expect(200);
  return body[0];
}

async function listed(): Promise<Shown | undefined> {
  const { body } = await request(service.url)
    .get('/api/v1/app-conversations/search')
    .set(service.user.headers)
    .expect(200);
  return body.items.find((item: { id: string }) => item.id === hex);
}

function turnTo(status: string): void {
  agent.append(id, {
    kind: 'ConversationStateUpdateEvent',
    source: 'environment',
    key: 'execution_status',
    value: status,
  });
  Object.assign(agent.conversations.get(id)?.info ?? {}, { execution_status: status });
}

function report(error: unknown): void {
  agent.append(id, { kind: 'ConversationErrorEvent', source: 'environment', ...(error as object) });
}

async function untilShown(status: string): Promise<Shown> {
  await until(async () => (await shown()).execution_status === status);
  return shown();
}

describe('a conversation that ended in an error', () => {
  it.each(['error', 'stuck'])('says why beside the status %s, until it works again', async (status) => {
    turnTo('running');
    expect((await untilShown('running')).error).toBeNull();
    report({ code: 'LlmRetried', detail: 'The call is repeated in 2 s.' });
    report(REFUSED);
    turnTo(status);
    expect((await untilShown(status)).error).toEqual(REFUSED);
    expect((await listed())?.error).toEqual(REFUSED);

    await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
    expect(await shown()).toMatchObject({ execution_status: null, error: REFUSED });
    await service.dataSource.query(`UPDATE sandboxes SET status = 'RUNNING', address = $1`, [agent.address]);

    turnTo('running');
    expect((await untilShown('running')).error).toBeNull();
    turnTo('finished');
    expect((await untilShown('finished')).error).toBeNull();
  });

  it('never shows more than a few sentences, whatever the agent server says', async () => {
    report({ code: { not: 'a text' }, detail: `\0\ud800${'x'.repeat(10_000)}` });
    turnTo('error');
    const { error } = await untilShown('error');
    expect(error?.code.length).toBeLessThanOrEqual(100);
    expect(error?.detail.length).toBeLessThanOrEqual(2_000);
    expect(error?.detail.isWellFormed()).toBe(true);
  });

  it('says why in the first message of a stream, wherever that begins, also where the status came before the reason', async () => {
    turnTo('error');
    await untilShown('error');
    report(REFUSED);
    await until(async () => (await shown()).error !== null);
    for (const query of ['', '?from=now', '?last_event_id=1']) {
      const stream = await EventSource.connect(
        `${service.url}/api/v1/conversation/${hex}/events/stream${query}`,
        service.user.headers,
      );
      await stream.untilCount(1);
      stream.close();
      expect(stream.events[0]).toMatchObject({
        event: 'ConversationStateUpdateEvent',
        data: { key: 'full_state', value: { id: hex, execution_status: 'error', error: REFUSED } },
      });
    }
  });
});
