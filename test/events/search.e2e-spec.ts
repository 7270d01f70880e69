import { beforeAll, describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { messageEvent } from '../fakes/sample-events.js';
import { openLog } from '../support/followed-logs.js';
import { requireDocumentedEvents } from '../support/stored-events.js';
import { useTestApp } from '../support/use-test-app.js';

const service = useTestApp({}, {}, ({ dataSource }) => requireDocumentedEvents(dataSource));
let id: string;
let events: AgentEvent[];

/** A conversation whose sandbox is gone: kinds take turns, a second lies between two events. */
beforeAll(async () => {
  id = await openLog(service, service.user.id, 'a-sandbox-that-is-gone');
  events = Array.from({ length: 25 }, (_none, index) => ({
    ...(index % 5 === 4
      ? ({ kind: 'PauseEvent', id: `e${index}`, source: 'user' } as const)
      : messageEvent(`e${index}`, 'user', 'hello')),
    timestamp: `2026-01-31T12:00:${String(index).padStart(2, '0')}.000001`,
  }));
  await service.app.get(EventStore, { strict: false }).store(id, events);
});

async function get(path: string, user = service.user): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${service.url}/api/v1/conversation/${path}`, { headers: user.headers });
  return { status: response.status, body: await response.json() };
}

async function found(query: string): Promise<unknown[]> {
  return jsonList((await get(`${id}/events/search?${query}`)).body, 'items').map((event) =>
    jsonAt(event, 'id'),
  );
}

function named(...numbers: number[]): string[] {
  return numbers.map((number) => `e${number}`);
}

describe('GET /api/v1/conversation/{id}/events/search', () => {
  it('returns events as they came', async () => {
    expect(await get(`${id.replaceAll('-', '')}/events/search`)).toEqual({
      status: 200,
      body: { items: events, next_page_id: null },
    });
  });

  it.each(['TIMESTAMP', 'TIMESTAMP_DESC'])('returns each event once in pages (%s)', async (order) => {
    const seen: unknown[] = [];
    let page = '';
    do {
      const { body } = await get(`${id}/events/search?limit=7&sort_order=${order}${page}`);
      seen.push(...jsonList(body, 'items'));
      const next = jsonText(body, 'next_page_id');
      page = next === null ? '' : `&page_id=${next}`;
    } while (page !== '');

    expect(seen).toEqual(order === 'TIMESTAMP' ? events : events.toReversed());
  });

  it.each([
    ['kind__eq=PauseEvent', named(4, 9, 14, 19, 24)],
    ['kind__eq=PauseEvent&limit=2', named(4, 9)],
    ['kind__eq=Nothing', []],
    ['timestamp__gte=2026-01-31T12:00:23.000001', named(23, 24)],
    ['timestamp__gte=2026-01-31T12:00:23.000002', named(24)],
    ['timestamp__gte=2026-01-31T13:00:24%2B01:00', named(24)],
    ['timestamp__gte=2026-01-31T13:00:24+01:00', named(24)],
    ['timestamp__lt=2026-01-31T12:00:01.000001Z', named(0)],
    ['timestamp__gte=2026-01-31T12:00:01&timestamp__lt=2026-01-31T12:00:03', named(1, 2)],
    ['limit=3&page_id=', named(0, 1, 2)],
    ['limit=2&sort_order=TIMESTAMP_DESC&kind__eq=MessageEvent', named(23, 22)],
  ])('supports %s', async (query, expected) => {
    expect(await found(query)).toEqual(expected);
  });

  it('cuts a page that would be too large, and continues on the next one', async () => {
    const large = await openLog(service, service.user.id, 'a-sandbox-that-is-gone');
    const many = Array.from({ length: 6 }, (_none, index) =>
      messageEvent(`e${index}`, 'user', 'x'.repeat(1_500_000)),
    );
    await service.app.get(EventStore, { strict: false }).store(large, many);
    const first = (await get(`${large}/events/search`)).body;
    const second = (await get(`${large}/events/search?page_id=${jsonText(first, 'next_page_id')}`)).body;

    expect(jsonList(first, 'items').map((event) => jsonAt(event, 'id'))).toEqual(named(0, 1));
    expect(jsonList(second, 'items').map((event) => jsonAt(event, 'id'))).toEqual(named(2, 3));
    const third = (await get(`${large}/events/search?page_id=${jsonText(second, 'next_page_id')}`)).body;
    expect(jsonList(third, 'items').map((event) => jsonAt(event, 'id'))).toEqual(named(4, 5));
    expect(jsonAt(third, 'next_page_id')).toBeNull();
  });

  it.each([
    ['timestamp__lt=2026-02-31T00:00:00Z', 'timestamp__lt', 'datetime_parsing'],
    ['kind__eq=a&kind__eq=b', 'kind__eq', 'string_type'],
  ])('refuses %s', async (query, member, type) => {
    expect(await get(`${id}/events/search?${query}`)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['query', member], type }] },
    });
  });
});

describe('GET /api/v1/events/count', () => {
  const count = async (query: string, user = service.user): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(`${service.url}/api/v1/events/count?${query}`, { headers: user.headers });
    return { status: response.status, body: await response.json() };
  };

  it.each([
    ['', 25],
    ['kind__eq=PauseEvent', 5],
    ['timestamp__gte=2026-01-31T12:00:20', 5],
    ['kind__eq=PauseEvent&timestamp__lt=2026-01-31T12:00:10', 2],
  ])('counts the events of a conversation like the address below it: %s', async (query, body) => {
    expect(await get(`${id}/events/count?${query}`)).toEqual({ status: 200, body });
    expect(await count(`conversation_id__eq=${id}&${query}`)).toEqual({ status: 200, body });
  });
});

describe('GET /api/v1/conversation/{id}/events', () => {
  it('returns events by id, in the order asked for, with null for unknown ones', async () => {
    expect(await get(`${id}/events?id=e3&id=nothing&id=e1&id=e3`)).toEqual({
      status: 200,
      body: [events[3], null, events[1], events[3]],
    });
  });
});

it.each(['/search', '/count', '?id=e1', '/stream'])('has nothing under what is no id (%s)', async (path) => {
  expect(await get(`garbage/events${path}`)).toMatchObject({ status: 404 });
});
