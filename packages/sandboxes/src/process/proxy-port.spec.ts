import { afterEach, expect, it } from '@jest/globals';
import { createServer, type Server } from 'node:http';
import { startListening, stopServer } from '../../../../test/support/start-listening.js';
import { portObstacle } from './proxy-port.js';

const servers: Server[] = [];

afterEach(async () => {
  await Promise.all(servers.splice(0).map(stopServer));
});

/** A port at which something answers by this status. */
async function taken(status: number): Promise<number> {
  const server = createServer((_, response) => response.writeHead(status).end());
  servers.push(server);
  return await startListening(server);
}

it('a port that is free, or that of a replica’s proxy, is no obstacle to one', async () => {
  expect(await portObstacle(0)).toBeNull();
  expect(await portObstacle(await taken(407))).toBeNull();
});

it('a port of another program is one, which says what to do', async () => {
  const port = await taken(200);
  expect(await portObstacle(port)).toMatch(new RegExp(`port ${port} .*EADDRINUSE.*SANDBOX_EGRESS_PORT`));
});
