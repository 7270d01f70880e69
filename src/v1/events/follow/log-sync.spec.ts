import { describe, expect, it } from '@jest/globals';
import type { AgentEvent, EventPage } from '../../../agent-protocol/events.js';
import { PerServerLimit, readLogAfter } from './log-sync.js';

it('lets a server that hangs keep only its own reads waiting', async () => {
  const limit = new PerServerLimit(2);
  const { promise, resolve } = Promise.withResolvers<void>();
  const begun: number[] = [];
  const hanging = [1, 2, 3].map((number) =>
    limit.run('a', async () => {
      begun.push(number);
      await promise;
    }),
  );

  await expect(limit.run('b', async () => 'read')).resolves.toBe('read');
  expect(begun).toEqual([1, 2]);

  resolve();
  await Promise.all(hanging);
  expect(begun).toEqual([1, 2, 3]);
});

it('forgets servers without reads, failed ones too', async () => {
  const limit = new PerServerLimit(1);

  await expect(limit.run('a', () => Promise.reject(new Error('away')))).rejects.toThrow('away');

  expect(limit.size).toBe(0);
});

function log(ids: string): (pageId: string | undefined) => Promise<EventPage> {
  const events = Array.from(ids, (id): AgentEvent => ({
    kind: 'PauseEvent',
    id,
    timestamp: '2026-01-31T12:00:00',
    source: 'user',
  }));
  return async (pageId) => {
    const first = Math.max(0, ids.indexOf(pageId ?? '-'));
    return { items: events.slice(first, first + 3), next_page_id: ids[first + 3] ?? null };
  };
}

async function read(ids: string, after: string | null): Promise<string[]> {
  const pages: string[] = [];
  for await (const page of readLogAfter(log(ids), after)) {
    pages.push(page.map(({ id }) => id).join(''));
  }
  return pages;
}

describe('readLogAfter', () => {
  it.each([
    ['an empty log', '', null, ['']],
    ['a log from its start', 'abcdefgh', null, ['abc', 'def', 'gh']],
    ['what comes after an event', 'abcdefgh', 'c', ['de', 'fgh']],
    ['nothing after the last one', 'abc', 'c', ['']],
    ['everything when the event is unknown', 'abcd', 'x', ['abc', 'd']],
    ['an empty log that is known not to be', '', 'x', ['']],
  ])('reads %s', async (_name, ids, after, expected) => {
    expect(await read(ids, after)).toEqual(expected);
  });

  it('ends when pages name each other', async () => {
    const pages: unknown[] = [];
    const inTurn = async (pageId: string | undefined): Promise<EventPage> => ({
      items: [],
      next_page_id: pageId === 'a' ? 'b' : 'a',
    });
    for await (const page of readLogAfter(inTurn, null)) {
      pages.push(page);
    }

    expect(pages).toHaveLength(3);
  });

  it('ends when a server names the same page again and again', async () => {
    const pages: unknown[] = [];
    const same = async (): Promise<EventPage> => ({ items: [], next_page_id: 'a' });
    for await (const page of readLogAfter(same, null)) {
      pages.push(page);
    }

    expect(pages).toHaveLength(2);
  });
});
