import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * A port of this machine's own address that nothing listens on right now. Another program may take it before it is
 * used: whoever is told it ends then, and gets another one at its next start.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') {
    throw new Error('the system gave no port');
  }
  return address.port;
}
