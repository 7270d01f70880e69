import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startListening } from '../../../test/support/start-listening.js';
import { reservedPort } from '../../../test/support/reserved-port.js';
import { startTestAgentServer, type TestAgentServer } from './support/test-agent-server.js';

let program: Server;
let server: TestAgentServer;

beforeAll(async () => {
  program = createServer((socket) => socket.on('error', () => undefined));
  const environment = {
    WORKER_1: String(await startListening(program)),
    WORKER_2: String(await reservedPort()),
    WORKER_3: '70000',
    PATH: '/bin:/usr/bin',
  };
  server = await startTestAgentServer({ environment });
});

afterAll(async () => {
  program.close();
  await server.stop();
});

it('tells at which of its ports something listens', async () => {
  const names = ['WORKER_1', 'WORKER_2', 'WORKER_3', 'PATH', 'constructor', ''].join();
  expect(await server.client.get(`/api/ports?names=${names}`)).toEqual({ listening: ['WORKER_1'] });
});

it('says what it wants to be asked', async () => {
  expect(await server.client.send('GET', '/api/ports')).toMatchObject({ status: 422 });
});
