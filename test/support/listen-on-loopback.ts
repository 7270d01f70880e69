import type { Server } from 'node:net';

/** Starts a server on any free port of 127.0.0.1 and answers the port. */
export async function listenOnLoopback(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') {
    throw new Error('the server listens on no port');
  }
  return address.port;
}
