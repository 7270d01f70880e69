import { once } from 'node:events';
import { connect } from 'node:net';
import { Router } from 'express';
import { z } from 'zod';
import type { ListeningPorts } from '@slipway/agent-protocol/server.js';
import type { ToolView } from '../tool-view.js';
import { parseRequest } from './request-parsing.js';

const CONNECT_MS = 500;
const MAX_NAMES = 100;
const MAX_PORT = 65_535;

const querySchema = z.object({
  names: z
    .string()
    .max(5_000)
    .transform((text) => text.split(',').slice(0, MAX_NAMES)),
});

/** `/api/ports`: at which of the ports that variables of the tools name something listens. Our own service asks this. */
export function portRoutes({ environment }: ToolView): Router {
  const router = Router();
  const host = environment['LISTEN_HOST'] ?? '127.0.0.1';
  router.get('/', async (request, response) => {
    const { names } = parseRequest(querySchema, 'query', request.query);
    const found = await Promise.all(
      names.map(async (name) => {
        const port = Object.hasOwn(environment, name) ? (environment[name] ?? '') : '';
        return isPort(port) && (await listens(host, Number(port))) ? [name] : [];
      }),
    );
    response.json({ listening: found.flat() } satisfies ListeningPorts);
  });
  return router;
}

/** Whether a program accepts connections there. */
async function listens(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function isPort(text: string): boolean {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= MAX_PORT;
}
