import type { Server } from 'node:http';

/**
 * Lets a kept connection end with its next answer once the server is being closed. Node ends only those that are idle in
 * that moment: one on which request follows request would hold the close for ever.
 */
export function endConnectionsOnClose(server: Server): void {
  server.prependListener('request', (_request, response) => {
    if (!server.listening) {
      response.shouldKeepAlive = false;
    }
  });
}
