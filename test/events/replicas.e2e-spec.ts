import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { DatabaseProxy } from '../support/database-proxy.js';
import { EventSource } from '../support/event-source.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { createTestDatabase, type TestDatabase } from '../support/test-database.js';
import { until } from '../support/until.js';

let database: TestDatabase;
let proxy: DatabaseProxy;
let first: TestApp;
let second: TestApp;
let agent: FakeConversationServer & { address: string };
let id: string;

/** The first one follows; it sees the database through a relay. */
beforeEach(async () => {
  database = await createTestDatabase();
  proxy = await DatabaseProxy.start(database.url);
  first = await createTestApp({}, proxy.urlOf(database.url));
  agent = await FakeConversationServer.start();
  const sandbox = await insertRunningSandbox(first, first.user.id, agent);
  id = randomUUID();
  agent.open(id);
  await openLog(first, first.user.id, sandbox, id);
  await until(() => agent.watchers === 1);
  second = await createTestApp({}, database.url);
});

afterEach(async () => {
  await second.app.close();
  await agent.close();
  await proxy.goAway();
  await database.drop();
});

async function listen({ url }: TestApp, last = '0'): Promise<EventSource> {
  return await EventSource.connect(`${url}/api/v1/conversation/${id}/events/stream`, {
    ...first.user.headers,
    'Last-Event-ID': last,
  });
}

async function follower(): Promise<unknown> {
  const [row] = await second.dataSource.query<{ follower: string | null }[]>(
    'SELECT follower FROM followed_conversations',
  );
  return row?.follower;
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_none, index) => 1 + index);
}

describe('several replicas', () => {
  it('one follows a log, each streams it, and another takes over when that one stops, which no stream delays', async () => {
    const before = await follower();
    const streams = [await listen(first), await listen(second)] as const;
    numbers(20).forEach(() => agent.append(id));
    await Promise.all(streams.map((stream) => stream.untilCount(20)));

    expect(agent.watchers).toBe(1);
    expect(await follower()).toBe(before);
    expect(streams.map((stream) => stream.ids)).toEqual([numbers(20), numbers(20)]);

    await first.app.close();
    await streams[0].untilEnded();
    const again = await listen(second, streams[0].lastId);
    agent.append(id);
    await again.untilCount(1);

    expect(again.ids).toEqual([21]);

    again.close();
    streams[1].close();
  });

  it('another replica takes over when the first one loses the database, and nothing is lost or stored twice', async () => {
    const before = await follower();
    const stream = await listen(second);
    numbers(10).forEach(() => agent.append(id));
    await stream.untilCount(10);
    await proxy.goAway();
    numbers(10).forEach(() => agent.append(id));
    // What ten seconds would do.
    await second.dataSource.query('UPDATE followed_conversations SET follower_until = now()');
    await stream.untilCount(20);

    expect(await follower()).not.toBe(before);

    // Until it hears of its loss, the first one reads and stores too.
    await proxy.comeBack();
    numbers(20).forEach(() => agent.append(id));
    await stream.untilCount(40);
    await until(() => agent.watchers === 1);

    expect(stream.ids).toEqual(numbers(40));
    expect(stream.events.map(({ data }) => (data as { id: string }).id)).toEqual(
      agent.conversations.get(id)?.events.map((event) => event['id']),
    );

    stream.close();
    await first.app.close();
  });
});
