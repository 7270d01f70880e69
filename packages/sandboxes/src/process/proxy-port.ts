import { once } from 'node:events';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';
import { LOOPBACK } from './program-command.js';

const ANSWERS_MS = 2_000;
/** What egress proxies answer to a connection without a credential. */
const PROXY = 407;

/** Why no egress proxy of this installation can listen at the port; null: one can, or that of another replica does. */
export async function portObstacle(port: number): Promise<string | null> {
  const server = createServer();
  try {
    await once(server.listen({ host: LOOPBACK, port }), 'listening');
    return null;
  } catch (error) {
    return errorCode(error) === 'EADDRINUSE' && (await statusAt(port)) === PROXY
      ? null
      : `the egress proxy cannot listen at port ${port} of this machine (${errorMessage(error)}): choose another one by SANDBOX_EGRESS_PORT`;
  } finally {
    server.close();
  }
}

async function statusAt(port: number): Promise<number | null> {
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const asked = request({
    host: LOOPBACK,
    port,
    path: 'http://localhost/',
    timeout: ANSWERS_MS,
    agent: false,
  })
    .on('response', ({ statusCode = null }) => resolve(statusCode))
    .on('timeout', () => resolve(null))
    .on('error', () => resolve(null))
    .end();
  try {
    return await promise;
  } finally {
    asked.destroy();
  }
}
