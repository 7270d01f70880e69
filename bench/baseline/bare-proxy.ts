import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * The least that a proxy of one Node.js process does: it copies requests and responses with `node:http`, and judges
 * nothing. Needs TARGET_SOCKET, the Unix socket of the program. Prints the port that it listens on.
 */

const socketPath = process.env['TARGET_SOCKET'] ?? '';
const agent = new Agent({ keepAlive: true });

const server = createServer((incoming, response) => {
  const { url: path, method, headers } = incoming;
  const outgoing = request({ socketPath, agent, path, method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  outgoing.on('error', () => response.destroy());
  incoming.pipe(outgoing);
});

server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
