import { describe, expect, it } from '@jest/globals';
import type { AgentEvent, EventPage } from '@slipway/agent-protocol/events.js';
import { AgentServerError } from '@slipway/agent-client/agent-server.http.js';
import { readLogAfter } from './log-sync.js';

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
    ['an empty log that once had events', '', 'x', ['']],
  ])('reads %s', async (_name, ids, after, expected) => {
    expect(await read(ids, after)).toEqual(expected);
  });

  it('reads everything from a server that refuses an event it does not have', async () => {
    const pages = readLogAfter(async (pageId) => {
      if (pageId === 'x') {
        throw new AgentServerError(422, 'no such page');
      }
      return await log('ab')(pageId);
    }, 'x');

    const ids: string[] = [];
    for await (const page of pages) {
      ids.push(...page.map(({ id }) => id));
    }
    expect(ids).toEqual(['a', 'b']);
  });

  it('ends when pages form a cycle', async () => {
    const pages: unknown[] = [];
    const alternating = async (pageId: string | undefined): Promise<EventPage> => ({
      items: [],
      next_page_id: pageId === 'a' ? 'b' : 'a',
    });
    for await (const page of readLogAfter(alternating, null)) {
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

  it('ends when a server always names another page, and none holds an event', async () => {
    let requests = 0;
    const empty = async (): Promise<EventPage> => ({ items: [], next_page_id: String((requests += 1)) });
    for await (const page of readLogAfter(empty, null)) {
      expect(page).toEqual([]);
    }

    expect(requests).toBe(101);
  });
});
