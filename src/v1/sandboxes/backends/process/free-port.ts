import { once } from 'node:events';
import { createServer } from 'node:net';
import { jsonText } from '../../../../common/json-access.js';

/**
 * A port of an address of this machine that nothing listens on right now. Another program may take it before it is
 * used: whoever is told it ends then, and gets another one at its next start.
 */
export async function freePort(host: string): Promise<number> {
  const port = await listenOnce(host, 0);
  if (port === null) {
    throw new Error('the system gave no port');
  }
  return port;
}

/** Whether a program could listen there right now. */
export async function isPortFree(host: string, port: number): Promise<boolean> {
  return (await listenOnce(host, port)) !== null;
}

/** The port; null when it is taken. */
async function listenOnce(host: string, wanted: number): Promise<number | null> {
  const server = createServer();
  server.listen(wanted, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (jsonText(error, 'code') === 'EADDRINUSE') {
      return null;
    }
    throw error;
  }
  const address = server.address();
  server.close();
  await once(server, 'close');
  return address === null || typeof address === 'string' ? null : address.port;
}
