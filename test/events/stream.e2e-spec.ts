import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonList } from '@slipway/common/json-access.js';
import { FollowedConversationRepository } from '../../src/v1/events/followed-conversation.repository.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { messageEvent } from '../fakes/sample-events.js';
import { FakeConversationServer } from '../fakes/fake-conversation-server.js';
import type { TestApp } from '../support/create-test-app.js';
import { EventSource } from '../support/event-source.js';
import { insertRunningSandbox, openLog } from '../support/followed-logs.js';
import { requireDocumentedEvents } from '../support/stored-events.js';
import { until } from '../support/until.js';
import { useTestApp } from '../support/use-test-app.js';

const service = useTestApp({}, {}, ({ dataSource }) => requireDocumentedEvents(dataSource));
let agent: FakeConversationServer & { address: string };
let sandbox: string;
let id: string;
const open: EventSource[] = [];

beforeEach(async () => {
  agent = await FakeConversationServer.start();
  sandbox = await insertRunningSandbox(service, service.user.id, agent);
  id = randomUUID();
  agent.open(id);
  await openLog(service, service.user.id, sandbox, id);
  await until(() => agent.watchers === 1);
});

afterEach(async () => {
  open.splice(0).forEach((stream) => stream.close());
  await service.dataSource.query(`UPDATE sandboxes SET status = 'PAUSED', address = NULL`);
  await agent.close();
});

function address(query = '', { url }: TestApp = service): string {
  return `${url}/api/v1/conversation/${id}/events/stream${query}`;
}

async function listen(
  query = '',
  headers: Record<string, string> = {},
  at: TestApp = service,
): Promise<EventSource> {
  const stream = await EventSource.connect(address(query, at), { ...service.user.headers, ...headers });
  open.push(stream);
  return stream;
}

async function stored(): Promise<unknown[]> {
  const response = await fetch(`${service.url}/api/v1/conversation/${id}/events/search`, {
    headers: service.user.headers,
  });
  return jsonList(await response.json(), 'items');
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_none, index) => from + index);
}

describe('GET /api/v1/conversation/{id}/events/stream', () => {
  it('begins with the first event and continues with new ones', async () => {
    agent.append(id);
    agent.append(id, { kind: 'PauseEvent' });
    const stream = await listen();
    await stream.untilCount(2);
    agent.append(id, { kind: 'New\nKind' });
    await stream.untilCount(3);

    expect(stream.response.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    });
    expect(stream.events.map(({ id: seq, event }) => [seq, event])).toEqual([
      ['1', 'MessageEvent'],
      ['2', 'PauseEvent'],
      ['3', 'New Kind'],
    ]);
    expect(stream.events.map(({ data }) => data)).toEqual(await stored());
  });

  const BEGINNINGS: [string, string, Record<string, string>, number][] = [
    ['after the last one that arrived', '', { 'Last-Event-ID': '2' }, 3],
    ['after the one that the address names', '?last_event_id=1', {}, 2],
    ['after the header when there are both', '?last_event_id=1', { 'Last-Event-ID': '3' }, 4],
    ['with the next one', '?from=now', {}, 4],
    ['after the last one that arrived, whatever else', '?from=now', { 'Last-Event-ID': '1' }, 2],
    ['with the first one', '?from=start', {}, 1],
  ];

  it('begins where it is asked to', async () => {
    numbers(1, 3).forEach(() => agent.append(id));
    await until(async () => (await stored()).length === 3);
    const streams = await Promise.all(BEGINNINGS.map(([, query, headers]) => listen(query, headers)));
    agent.append(id);
    await until(() => streams.every((stream) => stream.lastId === '4'));

    expect(streams.map(({ ids }, index) => [BEGINNINGS[index]?.[0], ids])).toEqual(
      BEGINNINGS.map(([where, , , first]) => [where, numbers(first, 4)]),
    );
  });

  it.each(['garbage', '-1', '1.5', '99999999999', '1'])('refuses to begin after "%s"', async (last) => {
    const response = await fetch(address(), {
      headers: { ...service.user.headers, 'Last-Event-ID': last },
    });

    expect(response.status).toBe(422);
    expect(await response.json()).toEqual({
      detail: [
        {
          loc: ['header', 'last-event-id'],
          msg: 'Expected the id of an event of this stream, which is a number.',
          type: 'value_error',
        },
      ],
    });
  });

  it('answers HEAD without a stream', async () => {
    const response = await fetch(address(), { method: 'HEAD', headers: service.user.headers });

    expect(response.status).toBe(200);
    expect(await response.text()).toBe('');
  });

  it('sends the whole sequence over any number of connections', async () => {
    const total = 400;
    const received: number[] = [];
    let last = '';
    let appended = 0;
    // As random as it has to be, and the same every time.
    for (let state = 7; received.length < total; state = (state * 48_271) % 2_147_483_647) {
      for (let more = state % 40; more > 0 && appended < total; more -= 1) {
        agent.append(id);
        appended += 1;
      }
      const stream = await listen('', last === '' ? {} : { 'Last-Event-ID': last });
      const wanted = Math.min(1 + (state % 23), appended - received.length);
      await stream.untilCount(wanted);
      stream.close();
      const taken = stream.ids.slice(0, Math.max(wanted, 0));
      received.push(...taken);
      last = String(received.at(-1) ?? '');
    }

    expect(received).toEqual(numbers(1, total));
  });

  it('says when to connect again, and where it began: what happens in between is not missed', async () => {
    agent.append(id);
    await until(async () => (await stored()).length === 1);
    const stream = await listen('?from=now');
    await until(() => stream.position !== '');
    stream.close();
    expect(stream.retryMs).toBe(1000);
    expect(stream.events).toEqual([]);
    agent.append(id);
    await until(async () => (await stored()).length === 2);
    const again = await listen('?from=now', { 'Last-Event-ID': stream.position });
    await again.untilCount(1);

    expect(again.ids).toEqual([2]);
  });

  it('waits for a slow client without holding up others', async () => {
    const slow = await listen();
    slow.response.pause();
    const fast = await listen();
    const events = numbers(1, 60).map((n) => messageEvent(`e${n}`, 'user', 'x'.repeat(200_000)));
    await service.app.get(EventStore, { strict: false }).store(id, events);
    await fast.untilCount(60);

    expect(slow.events.length).toBeLessThan(60);

    slow.response.resume();
    await slow.untilCount(60);
    expect(slow.ids).toEqual(numbers(1, 60));
  });

  it('is there 32 times for a user, and once more when one is closed', async () => {
    const streams = await Promise.all(Array.from({ length: 32 }, () => listen()));
    const refused = await fetch(address(), { headers: service.user.headers });
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ code: 'rate_limited' });
    streams[0]?.close();
    await until(async () => {
      const next = new AbortController();
      const { status } = await fetch(address(), { headers: service.user.headers, signal: next.signal });
      next.abort();
      return status === 200;
    });
  });

  it('ends when the conversation is removed', async () => {
    const stream = await listen();
    await service.dataSource.transaction((manager) =>
      service.app.get(FollowedConversationRepository, { strict: false }).remove(manager, id),
    );
    await stream.untilEnded();

    expect((await fetch(address(), { headers: service.user.headers })).status).toBe(404);
  });

  it('ends when its key is revoked; streams of other keys stay open', async () => {
    const issued = await fetch(`${service.url}/api/v1/api-keys`, {
      method: 'POST',
      headers: { ...service.user.headers, 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'second' }),
    });
    const { id: keyId, key } = (await issued.json()) as { id: string; key: string };
    const revoked = await listen('', { 'X-Session-API-Key': key });
    const other = await listen();
    await fetch(`${service.url}/api/v1/api-keys/${keyId}`, {
      method: 'DELETE',
      headers: service.user.headers,
    });
    await revoked.untilEnded();

    expect(other.ended).toBe(false);
  });

  it('is open to a signed-in browser, from its own origin, until it is signed out', async () => {
    const signIn = await fetch(`${service.url}/auth/key`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key: service.user.key }),
    });
    const { csrf_token: token } = (await signIn.json()) as { csrf_token: string };
    const cookie = signIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
    const foreign = { Cookie: cookie, Origin: 'https://evil.example' };
    expect((await fetch(address(), { headers: foreign })).status).toBe(403);
    const stream = await EventSource.connect(address(), { Cookie: cookie, Origin: service.url });
    open.push(stream);
    agent.append(id);
    await stream.untilCount(1);
    await fetch(`${service.url}/auth/logout`, {
      method: 'POST',
      headers: { Cookie: cookie, 'X-CSRF-Token': token },
    });

    await stream.untilEnded();
  });

  it('continues after the connection for notifications was lost', async () => {
    const stream = await listen();
    await service.dataSource.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'slipway notifications' AND datname = current_database()`,
    );
    agent.append(id);
    await stream.untilCount(1);

    expect(stream.ids).toEqual([1]);
  });
});
