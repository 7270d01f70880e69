import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A port of an address of this machine that nothing listens on right now. Another program may take it before it is
 * used: whoever is told it ends then, and gets another one at its next start.
 */
export async function freePort(host: string): Promise<number> {
  const server = createServer();
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') {
    throw new Error('the system gave no port');
  }
  return address.port;
}
