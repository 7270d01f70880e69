import { beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { REFERENCE_ROUTES, REFERENCE_VERSION } from './support/published-agent-server.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const DOCUMENTATION = new URL('../../../docs/clients.md', import.meta.url);
/** Removes the conversation that the others are asked for. */
const LAST = 'DELETE /api/conversations/{conversation_id}';

/** The routes of the documentation's list of what is left out, each for all that begin with it. */
function leftOut(): string[] {
  const [, list = ''] = readFileSync(DOCUMENTATION, 'utf8').split('## What the agent server leaves out\n');
  const [rows = ''] = list.split('\n## ');
  return rows
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, route = '']) => route));
}

const isOf = (route: string) => (prefix: string) => (route.split(' ')[1] ?? '').startsWith(prefix);

describe(`routes of the reference (${REFERENCE_VERSION})`, () => {
  const server = useAgentServer(startTestAgentServer);
  let id: string;

  beforeAll(async () => {
    id = await server.client.start();
  });

  const addressOf = (route: string, conversation = id): [string, { method: string }] => {
    const [method = '', template = ''] = route.split(' ');
    const ofConversation = template.replaceAll(/\{(runtime_)?conversation_id\}/g, conversation);
    return [ofConversation.replaceAll(/\{[a-z_]+\}/g, 'x'), { method }];
  };
  const isServed = async (route: string): Promise<boolean> => {
    const response = await server.client.fetch(...addressOf(route));
    const text = await response.text();
    expect(response.status).toBeLessThan(500);
    return !(response.status === 404 && text === '{"detail":"Not Found"}');
  };

  it('says which version it follows', async () => {
    expect(await server.client.get('/alive')).toEqual({ status: 'ok', assigned: true });
    expect(await server.client.get('/ready')).toEqual({ status: 'ok' });
    const text: unknown = expect.any(String);
    const seconds: unknown = expect.any(Number);
    expect(await server.client.get('/server_info')).toEqual({
      uptime: seconds,
      idle_time: seconds,
      title: text,
      version: REFERENCE_VERSION,
      capabilities: ['conversation_runtime_routes_v1', 'idempotent_conversation_create_v1'],
      usable_tools: expect.any(Array),
      docs: text,
      redoc: text,
      instance_id: text,
    });
  });

  it('need the key, but for a few', async () => {
    const open: string[] = [];
    for (const route of REFERENCE_ROUTES) {
      const [path, init] = addressOf(route);
      const { status } = await fetch(`${server.client.url}${path}`, init);
      open.push(...([401, 404].includes(status) ? [] : [path]));
    }
    expect(open.toSorted()).toEqual(['/', '/alive', '/health', '/ready', '/server_info']);
  });

  it.each([randomUUID(), 'nonsense'])('know no other conversation: %s', async (unknown) => {
    const routes = REFERENCE_ROUTES.filter((route) => /\{(runtime_)?conversation_id\}/.test(route));
    expect(routes.length).toBeGreaterThan(40);
    for (const route of routes) {
      const response = await server.client.fetch(...addressOf(route, unknown));
      const refused = [route, 404, { detail: 'Conversation not found' }];
      expect([route, response.status, await response.json()]).toEqual(refused);
    }
  });

  it('are served, or listed with a reason', async () => {
    const missing: string[] = [];
    for (const route of [...REFERENCE_ROUTES.filter((one) => one !== LAST), LAST]) {
      missing.push(...((await isServed(route)) ? [] : [route]));
    }
    const prefixes = leftOut();

    expect(missing.filter((route) => !prefixes.some(isOf(route)))).toEqual([]);
    // Whatever is served by now is no longer listed.
    expect(prefixes.filter((prefix) => !missing.some((route) => isOf(route)(prefix)))).toEqual([]);
    const served = REFERENCE_ROUTES.filter((route) => !missing.includes(route));
    expect(served.filter((route) => prefixes.some(isOf(route)))).toEqual([]);
  });
});
