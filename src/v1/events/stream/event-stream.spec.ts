import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import express, { type Response } from 'express';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { EventStream } from './event-stream.js';

let server: Server;
let url: string;
let stream: EventStream;
let ended: Promise<void>;
/** Aborts requests to `/late`, which begins a stream after that. */
let leaving: AbortController;
let left: Promise<void>;

beforeEach(async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
  leaving = new AbortController();
  const app = express();
  const begin = (response: Response): void => {
    stream = new EventStream({
      response,
      position: 0,
      first: null,
      read: async () => ({ parts: [], hasMore: false }),
    });
    ended = stream.run();
  };
  app.get('/', (_request, response) => begin(response));
  left = new Promise((resolve) => {
    app.get('/late', async (_request, response) => {
      leaving.abort();
      await once(response, 'close');
      begin(response);
      resolve();
    });
  });
  server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  url = typeof address === 'object' ? `http://127.0.0.1:${address?.port}` : '';
});

afterEach(async () => {
  jest.useRealTimers();
  server.closeAllConnections();
  server.close();
});

describe('EventStream', () => {
  it('sends a heartbeat every fifteen seconds', async () => {
    const { body } = await fetch(url);
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe('retry: 1000\nid: 0\n\n');
    jest.advanceTimersByTime(14_999);
    await turn();
    jest.advanceTimersByTime(1);

    expect((await reader?.read())?.value).toBe(': heartbeat\n\n');

    jest.advanceTimersByTime(15_000);

    expect((await reader?.read())?.value).toBe(': heartbeat\n\n');

    stream.close();
    await ended;

    expect((await reader?.read())?.done).toBe(true);
  });

  it('ends when its client disconnects', async () => {
    const leaving = new AbortController();
    const { body } = await fetch(url, { signal: leaving.signal });
    leaving.abort();
    await ended;

    await expect(body?.getReader().read()).rejects.toThrow('aborted');
  });

  it('ends where its client has left before it began', async () => {
    await expect(fetch(`${url}/late`, { signal: leaving.signal })).rejects.toThrow('aborted');
    await left;

    await ended;
  });
});
