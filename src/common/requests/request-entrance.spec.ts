import { createServer, type Server } from 'node:http';
import { afterEach, describe, expect, it } from '@jest/globals';
import { startListening } from '../../../test/support/start-listening.js';
import type { Middleware } from './middleware.js';
import { RequestEntrance } from './request-entrance.js';

let server: Server;

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

/** Starts a server whose framework says so; what is refused says why. */
async function start(steps: readonly Middleware[]): Promise<() => Promise<string>> {
  const entrance = new RequestEntrance({
    steps,
    refuse: (error, _request, response) => response.end(`refused: ${String(error)}`),
  });
  server = createServer(entrance.before((_request, response) => response.end('framework')));
  const port = await startListening(server);
  return async () => (await fetch(`http://127.0.0.1:${port}/`)).text();
}

describe('RequestEntrance', () => {
  it('takes requests through the steps, in order, before the framework', async () => {
    const seen: string[] = [];
    const step =
      (name: string): Middleware =>
      (_request, _response, next) => {
        seen.push(name);
        next();
      };
    const send = await start([step('first'), step('second')]);

    expect(await send()).toBe('framework');
    expect(seen).toEqual(['first', 'second']);
  });

  it.each<[string, Middleware]>([
    ['ends with an error', (_request, _response, next) => next(new Error('no'))],
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
  ])('refuses what a step %s for', async (_how, step) => {
    const send = await start([step]);

    expect(await send()).toBe('refused: Error: no');
  });
});
