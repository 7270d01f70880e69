import { Server as HttpServer } from 'node:http';
import type { Server } from 'node:net';

/** Starts a server, on any free port and on loopback unless something else is said, and answers the port. */
export async function startListening(server: Server, port = 0, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') {
    throw new Error('the server listens on no port');
  }
  return address.port;
}

/** Ends a server, with the connections of its requests. */
export async function stopServer(server: Server): Promise<void> {
  if (server instanceof HttpServer) {
    server.closeAllConnections();
  }
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
}
