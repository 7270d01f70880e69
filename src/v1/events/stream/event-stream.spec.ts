import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import express from 'express';
import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { EventStream } from './event-stream.js';

let server: Server;
let url: string;
let stream: EventStream;
let ended: Promise<void>;

beforeEach(async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask', 'performance', 'Date'] });
  const app = express();
  app.get('/', (_request, response) => {
    stream = new EventStream({
      response,
      position: 0,
      first: null,
      read: async () => ({ parts: [], hasMore: false }),
    });
    ended = stream.run();
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
});
