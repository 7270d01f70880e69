import { afterEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { WebSocket } from 'ws';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { WEBHOOK_DEFAULTS } from '../src/webhooks/webhook-sender.js';
import { SESSION_KEY } from './support/agent-server-client.js';
import { startListening } from '../../../test/support/start-listening.js';
import { startTestAgentServer, type TestAgentServer } from './support/test-agent-server.js';
import { until } from '../../../test/support/until.js';

interface Hook {
  path: string;
  key: unknown;
  body: unknown;
  status: number;
}

let server: TestAgentServer;
let receiver: Server;

async function start(statuses: number[]): Promise<Hook[]> {
  const hooks: Hook[] = [];
  receiver = createServer((request, response) => {
    void record(request, response);
  });
  const record = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await json(request);
    const status = statuses.shift() ?? 200;
    hooks.push({ path: request.url ?? '', key: request.headers['x-session-api-key'], body, status });
    response.writeHead(status).end();
  };
  const baseUrl = `http://127.0.0.1:${await startListening(receiver)}/hooks`;
  const webhook = { ...WEBHOOK_DEFAULTS, baseUrl, flushDelayMs: 1, retryDelayMs: 1 };
  server = await startTestAgentServer({ webhook });
  return hooks;
}

afterEach(async () => {
  await server.stop();
  receiver.close();
});

const events = (hooks: Hook[]) =>
  hooks.filter(({ path, status }) => path.includes('/events/') && status === 200).flatMap(({ body }) => body);
const statuses = (hooks: Hook[]) =>
  hooks
    .filter(({ path }) => path.endsWith('/conversations'))
    .map(({ body }) => jsonAt(body, 'execution_status'));
const timeOf = (value: unknown, member: string) => Date.parse(jsonText(value, member) ?? '');

it('sends states and events to the service, in order', async () => {
  const hooks = await start([]);
  const id = await server.client.start();
  await server.client.talk(id, 'say hello');
  const logged = await server.client.events(id);
  await until(() => events(hooks).length === logged.length && statuses(hooks).at(-1) === 'finished');
  expect(events(hooks)).toEqual(logged);
  expect(new Set(hooks.map(({ path }) => path))).toEqual(
    new Set(['/hooks/conversations', `/hooks/events/${id.replaceAll('-', '')}`]),
  );
  expect(new Set(hooks.map(({ key }) => key))).toEqual(new Set([SESSION_KEY]));
  await server.client.send('DELETE', `/api/conversations/${id}`);
  await until(() => statuses(hooks).at(-1) === 'deleting');
});

it('retries while the service is unavailable, and blocks nothing', async () => {
  const hooks = await start([503, 500, 429]);
  const id = await server.client.start();
  await server.client.talk(id, 'say hello');
  const logged = await server.client.events(id);
  await until(() => events(hooks).length === logged.length);
  expect(events(hooks)).toEqual(logged);
});

it('drops what is rejected', async () => {
  const hooks = await start([401]);
  const id = await server.client.start();
  await server.client.say(id, 'say hello');
  await until(() => statuses(hooks).includes('finished'));
  const [refused, ...later] = hooks;
  expect(refused?.status).toBe(401);
  expect(later.map(({ body }) => body)).not.toContainEqual(refused?.body);
});

it('sends nothing that the service reads over a socket, until the socket closes', async () => {
  const hooks = await start([]);
  const id = await server.client.start();
  await server.client.talk(id, 'say hello');
  const before = await server.client.events(id);
  await until(() => events(hooks).length === before.length);
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/sockets/events/${id}?frames=linked`, {
    headers: { 'X-Session-API-Key': SESSION_KEY },
  });
  const frames: unknown[] = [];
  socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString('utf8'))));
  await until(() => frames.length > 0);
  await server.client.talk(id, 'say more');
  const logged = await server.client.events(id);
  await until(() => frames.some((frame) => jsonAt(frame, 'event', 'id') === jsonAt(logged.at(-1), 'id')));
  expect(events(hooks)).toEqual(before);
  const saidAt = timeOf(logged[before.length], 'timestamp');
  expect(hooks.filter(({ body }) => timeOf(body, 'updated_at') > saidAt)).toEqual([]);

  socket.close();
  await once(socket, 'close');
  await until(async () => {
    await server.client.talk(id, 'say hello');
    return events(hooks).length > before.length;
  });
});
