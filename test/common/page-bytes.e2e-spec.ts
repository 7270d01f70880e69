import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { EventStore } from '../../src/v1/events/store/event-store.js';
import { EmptySandboxBackend } from '../fakes/empty-sandbox-backend.js';
import { messageEvent } from '../fakes/sample-events.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { openLog } from '../support/followed-logs.js';
import { sampleStartRequest } from '../support/sample-start-request.js';
import { say } from '../support/starts-client.js';
import { useTestApp } from '../support/use-test-app.js';

const MOST = 4 * 1024 * 1024;
/** Characters that JSON doubles, in a text that compresses well. */
const LARGE = '"\n'.repeat(100_000);
/** Of 400 kB in JSON each: more than one page. */
const ROWS = 12;

describe('a list whose items are large', () => {
  let log: string;

  const app = useTestApp({}, { sandboxBackend: new EmptySandboxBackend() });

  beforeAll(async () => {
    const { user } = app;
    const rows = new ConversationRows(app);
    log = await openLog(app, user.id, 'a-sandbox-that-is-gone');
    const events = Array.from({ length: ROWS }, (_none, index) => messageEvent(`e${index}`, 'user', LARGE));
    await app.app.get(EventStore, { strict: false }).store(log, events);
    for (let made = 0; made < ROWS; made += 1) {
      await rows.startTask(user.id, { status: 'ERROR', request: sampleStartRequest(say(LARGE)) });
      await rows.conversation(user.id, { metadata: { text: LARGE } });
    }
  });

  const get = async (path: string): Promise<{ status: number; bytes: number; body: unknown }> => {
    const response = await fetch(`${app.url}/api/v1/${path}`, { headers: app.user.headers });
    const text = await response.text();
    return { status: response.status, bytes: Buffer.byteLength(text), body: JSON.parse(text) };
  };
  const idOf = (item: unknown): string => jsonText(item, 'id') ?? '';
  /** All of it, page by page. */
  const walk = async (path: string): Promise<{ ids: string[]; sizes: number[] }> => {
    const ids: string[] = [];
    const sizes: number[] = [];
    let next = '';
    do {
      const { status, bytes, body } = await get(`${path}?limit=100${next}`);
      expect(status).toBe(200);
      ids.push(...jsonList(body, 'items').map(idOf));
      sizes.push(bytes);
      const id = jsonText(body, 'next_page_id');
      next = id === null ? '' : `&page_id=${id}`;
    } while (next !== '');
    return { ids, sizes };
  };

  it.each([
    ['start tasks', () => 'app-conversations/start-tasks', 'ids'],
    ['conversations', () => 'app-conversations', 'ids'],
    ['events', () => `conversation/${log}/events`, 'id'],
  ])('ends its pages at 4 MiB: %s', async (_name, path, parameter) => {
    const { ids, sizes } = await walk(`${path()}/search`);

    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.length).toBeGreaterThanOrEqual(ROWS);
    expect(sizes.length).toBeLessThan(6);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MOST);

    const query = (some: string[]): string => some.map((id) => `${parameter}=${id}`).join('&');
    const [first = '', second = ''] = ids;
    const few = await get(`${path()}?${query([second, randomUUID(), first])}`);
    expect(few.status).toBe(200);
    expect((few.body as unknown[]).map((item) => item && idOf(item))).toEqual([second, null, first]);
    const all = await get(`${path()}?${query(ids)}`);
    expect(all.status).toBe(422);
    expect(all.body).toMatchObject({ detail: [{ loc: ['query', parameter], type: 'too_long' }] });
  });
});
