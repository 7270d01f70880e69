import { afterEach, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { startListening } from '../../../../test/support/start-listening.js';
import { INSTANCE_LABEL } from '../container-layout.js';
import { connectEngine } from './engine.js';
import { InstanceNetwork } from './instance-network.js';

let server: Server;

afterEach(() => {
  server.close();
});

/** An engine that refuses to create a network, and shows that of another service from the fourth look on. */
async function networkOf(status: number): Promise<InstanceNetwork> {
  let looks = 0;
  server = createServer((request, response) => {
    const isLook = request.method === 'GET';
    looks += isLook ? 1 : 0;
    const isThere = isLook && looks > 3;
    response.writeHead(isThere ? 200 : isLook ? 404 : status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(isThere ? { Labels: { [INSTANCE_LABEL]: 'one' } } : { message: 'refused' }));
  });
  const port = await startListening(server, 0, '127.0.0.1');
  return new InstanceNetwork(connectEngine(`tcp://127.0.0.1:${port}`), 'one');
}

it('is that which another service is just creating, with the same bridge', async () => {
  const network = await networkOf(403);
  await network.ensure();
  expect(await network.exists()).toBe(true);
});

it('is not waited for where the engine fails', async () => {
  await expect((await networkOf(500)).ensure()).rejects.toThrow(
    'the network of the sandboxes cannot be created',
  );
});
