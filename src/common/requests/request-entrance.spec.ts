import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
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
async function start(
  steps: readonly Middleware[],
  handlerOf: (request: IncomingMessage) => ReturnType<typeof say> | null = () => null,
): Promise<(headers?: Record<string, string>) => Promise<string>> {
  const framework = (_request: IncomingMessage, response: ServerResponse): void => {
    response.end('framework');
  };
  const entrance = new RequestEntrance({
    steps,
    handlerOf,
    refuse: (error, _request, response) => response.end(`refused: ${String(error)}`),
  });
  server = createServer(entrance.before(framework));
  const port = await startListening(server);
  return async (headers = {}) => (await fetch(`http://127.0.0.1:${port}/`, { headers })).text();
}

function say(text: string) {
  return async (_request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.end(text);
  };
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

  it('answers what has a handler, and leaves pages from elsewhere to the framework', async () => {
    const send = await start([], () => say('handler'));

    expect(await send()).toBe('handler');
    expect(await send({ Origin: 'https://elsewhere.example' })).toBe('framework');
  });

  it('refuses what a handler rejects', async () => {
    const send = await start([], () => () => Promise.reject(new Error('broken')));

    expect(await send()).toBe('refused: Error: broken');
  });
});
