import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { startListening } from '../../../test/support/start-listening.js';
import { AgentServerCommands } from './agent-server.commands.js';
import { AgentServerConnections } from './agent-server.connections.js';
import { AgentServerHttp } from './agent-server.http.js';

const OLD_OUTPUT = { kind: 'BashOutput', order: 0, stdout: 'x', exit_code: null };

let server: Server;
let address: string;
let reads: number;
let connections: AgentServerConnections;
const enough = new AbortController();

beforeEach(async () => {
  reads = 0;
  server = createServer((request, response) => {
    if (request.method === 'POST') {
      response.end('{"id":"command"}');
      return;
    }
    reads += 1;
    if (reads === 8) {
      enough.abort();
    }
    response.end(JSON.stringify({ items: Array.from({ length: 10 }, () => OLD_OUTPUT) }));
  });
  address = `http://127.0.0.1:${await startListening(server)}`;
  connections = new AgentServerConnections();
});

afterEach(async () => {
  await connections.close();
  server.close();
});

it('pauses between reads that bring nothing new, whatever else they bring', async () => {
  const commands = new AgentServerCommands(new AgentServerHttp(connections));
  const begunAt = performance.now();
  const call = { command: 'true', cwd: null, timeoutSeconds: 60, signal: enough.signal };

  await expect(commands.run({ address, sessionKey: 'k' }, call)).rejects.toThrow('aborted');

  // Six pauses, the first of 15 ms, each half as long again.
  expect(performance.now() - begunAt).toBeGreaterThan(300);
});
