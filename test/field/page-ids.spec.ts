import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import {
  startSeparateAgentServer,
  type SeparateAgentServer,
} from '../../packages/agent-server/test/support/test-agent-server.js';
import { ConversationRows } from '../support/conversation-rows.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { organizationOf, resolvedOperations } from '../support/resolved-document.js';

const encoded = (text: string): string => Buffer.from(text, 'utf8').toString('base64url');
const MADE_UP = [
  'garbage',
  '%%%',
  '1',
  encoded('1'),
  encoded('hello'),
  encoded('2026-11-21T09:30:00.123456Z 0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f'),
  Buffer.from([0xff, 0xfe, 0, 1, 2, 3, 4, 5, 6, 7]).toString('base64url'),
  'a'.repeat(1024),
];

// A client that reads the first page again and again reads for ever.
describe('lists of the API', () => {
  let service: TestApp;
  let lists: { path: string; sorted: boolean }[];
  const pageIds = new Map<string, string>();

  const get = async (path: string): Promise<{ status: number; body: unknown }> => {
    const response = await fetch(`${service.url}${path}`, { headers: service.admin.headers });
    return { status: response.status, body: await response.json() };
  };
  const refused = async (path: string, name: string): Promise<unknown> => {
    const { status, body } = await get(path);
    return status === 422 && jsonList(jsonList(body, 'detail')[0], 'loc')[1] === name
      ? null
      : { path, status, body };
  };

  beforeAll(async () => {
    service = await createTestApp({ WEBHOOK_HOST_ALLOWLIST: '*.example.com' });
    const rows = new ConversationRows(service);
    const conversation = await rows.conversation(service.admin.id);
    await rows.conversation(service.admin.id);
    const endpoint = await fetch(`${service.url}/api/v1/webhook-endpoints`, {
      method: 'POST',
      headers: { ...service.admin.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ url: 'https://hooks.example.com/' }),
    });
    const ids = [
      ['/api/v1/conversation/', conversation.id],
      ['/api/v1/webhook-endpoints/', jsonText(await endpoint.json(), 'id') ?? ''],
    ] as const;
    const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as OpenAPIObject;
    lists = resolvedOperations(document).flatMap(({ name, operation }) => {
      const parameters = (operation.parameters ?? []).flatMap((each) => ('name' in each ? [each] : []));
      // The peer's list of members numbers its pages.
      const isNumbered = name.endsWith('/members');
      if (isNumbered || !parameters.some((each) => each.name === 'page_id')) {
        return [];
      }
      const id = ids.find(([prefix]) => name.includes(prefix))?.[1] ?? '';
      const query = new URLSearchParams(
        parameters
          .filter((each) => each.in === 'query' && each.required === true)
          .map((each): [string, string] => [
            each.name,
            String(jsonAt(each, 'schema', 'example') ?? each.example),
          ]),
      );
      const address = name.replace('GET ', '').replace('{id}', id);
      const path = address.replace('{organization_id}', organizationOf(address, service.admin.id));
      const sorted = parameters.some((each) => each.name === 'sort_order');
      return [{ path: `${path}?limit=1&${query.toString()}`, sorted }];
    });
    for (const { path } of lists) {
      const pageId = jsonText((await get(path)).body, 'next_page_id');
      if (pageId !== null) {
        pageIds.set(path, pageId);
      }
    }
  });

  afterAll(async () => {
    await service.close();
  });

  it('are all asked here', () => {
    expect(lists.length).toBeGreaterThanOrEqual(17);
    expect(pageIds.size).toBeGreaterThanOrEqual(5);
  });

  it.each(MADE_UP)('refuse the page id %s', async (pageId) => {
    const answers = await Promise.all(
      lists.map(({ path }) => refused(`${path}&page_id=${encodeURIComponent(pageId)}`, 'page_id')),
    );
    expect(answers.filter((answer) => answer !== null)).toEqual([]);
  });

  it('refuse page ids of other lists, and theirs with a part missing or added', async () => {
    const answers: unknown[] = [];
    for (const { path } of lists) {
      for (const [from, pageId] of pageIds) {
        // The older list of conversations is the newer one under another address.
        const isSame =
          path === from || [path, from].every((each) => /\/(app-)?conversations(\/search)?\?/.test(each));
        const forged = isSame
          ? [pageId.slice(0, -1), pageId.slice(0, -4), pageId.slice(4), `${pageId}AAAA`]
          : [pageId];
        for (const each of forged) {
          answers.push(await refused(`${path}&page_id=${each}`, 'page_id'));
        }
      }
    }
    expect(answers.filter((answer) => answer !== null)).toEqual([]);
  });

  it('take their own', async () => {
    for (const [path, pageId] of pageIds) {
      expect((await get(`${path}&page_id=${pageId}`)).status).toBe(200);
    }
  });

  it('refuse an unknown order', async () => {
    const sorted = lists.filter((list) => list.sorted);
    expect(sorted.length).toBeGreaterThanOrEqual(3);
    for (const { path } of sorted) {
      expect(await refused(`${path}&sort_order=sideways`, 'sort_order')).toBeNull();
    }
  });
});

describe('lists of the agent server', () => {
  let server: SeparateAgentServer;
  let id: string;

  beforeAll(async () => {
    server = await startSeparateAgentServer();
    id = await server.client.start();
    await server.client.say(id, 'say something', false);
    await server.client.post('/api/bash/execute_bash_command', { command: 'true' });
  });

  afterAll(async () => {
    await server.stop();
  });

  it('refuse page ids that are not theirs, and unknown orders', async () => {
    const lists = [
      '/api/conversations/search',
      `/api/conversations/${id}/events/search`,
      '/api/bash/bash_events/search',
    ];
    for (const list of lists) {
      const first = (await server.client.send('GET', `${list}?limit=1`)).body;
      const own = jsonText(jsonList(first, 'items')[0], 'id');
      expect((await server.client.send('GET', `${list}?page_id=${own}`)).status).toBe(200);
      expect((await server.client.send('GET', `${list}?page_id=`)).status).toBe(200);
      const others = lists.filter((other) => other !== list);
      const strange = await Promise.all(
        others.map(async (other) =>
          jsonText(jsonList((await server.client.send('GET', other)).body, 'items')[0], 'id'),
        ),
      );
      for (const pageId of [...MADE_UP, ...strange, own?.slice(0, -1)]) {
        const answer = await server.client.send(
          'GET',
          `${list}?page_id=${encodeURIComponent(String(pageId))}`,
        );
        expect([list, pageId, answer.status, jsonAt(jsonList(answer.body, 'detail')[0], 'loc')]).toEqual([
          list,
          pageId,
          422,
          ['query', 'page_id'],
        ]);
      }
      expect((await server.client.send('GET', `${list}?sort_order=sideways`)).status).toBe(422);
    }
  });
});
