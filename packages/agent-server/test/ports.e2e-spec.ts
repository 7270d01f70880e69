import { createServer } from 'node:net';
import { afterAll, expect, it } from '@jest/globals';
import { startListening } from '../../../test/support/start-listening.js';
import { reservedPort } from '../../../test/support/reserved-port.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const program = createServer((socket) => socket.on('error', () => undefined));
const server = useAgentServer(async () => {
  const ports = [await startListening(program), await reservedPort(), 70_000];
  const workers = ports.map((port, index) => [`WORKER_${index + 1}`, String(port)]);
  return await startTestAgentServer({
    environment: { ...Object.fromEntries(workers), PATH: '/bin:/usr/bin' },
  });
});

afterAll(() => void program.close());

it('tells at which of its ports something listens', async () => {
  const names = ['WORKER_1', 'WORKER_2', 'WORKER_3', 'PATH', 'constructor', ''].join();
  expect(await server.client.get(`/api/ports?names=${names}`)).toEqual({ listening: ['WORKER_1'] });
});

it('says what it wants to be asked', async () => {
  expect(await server.client.send('GET', '/api/ports')).toMatchObject({ status: 422 });
});
