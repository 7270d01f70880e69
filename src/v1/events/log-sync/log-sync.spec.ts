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

  it.each<[string, (pageId: string | undefined, asked: number) => string, number]>([
    ['form a cycle', (pageId) => (pageId === 'a' ? 'b' : 'a'), 3],
    ['are one and the same', () => 'a', 2],
    ['are always others, and none holds an event', (_pageId, asked) => String(asked), 101],
  ])('ends when the pages of a server %s', async (_how, next, most) => {
    const asked: (string | undefined)[] = [];
    const empty = async (pageId: string | undefined): Promise<EventPage> => ({
      items: [],
      next_page_id: next(pageId, asked.push(pageId)),
    });
    for await (const page of readLogAfter(empty, null)) {
      expect(page).toEqual([]);
    }

    expect(asked).toHaveLength(most);
  });
});
