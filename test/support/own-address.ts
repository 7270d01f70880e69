import { createServer } from 'node:net';
import { startListening } from './start-listening.js';

/**
 * The first of these addresses that is this machine's, null when none is. Whether one can listen there says it; the list of
 * Node.js lacks bridges that nothing is connected to yet.
 */
export async function firstOwnAddress(addresses: readonly string[]): Promise<string | null> {
  for (const address of addresses) {
    const server = createServer();
    try {
      await startListening(server, 0, address);
      return address;
    } catch {
      // Another machine's.
    } finally {
      server.close();
    }
  }
  return null;
}
