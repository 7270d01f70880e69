import { expect, it } from '@jest/globals';
import { checkedFetch, idleTimeoutFetch } from './model-fetch.js';

const EVENTS = { headers: { 'content-type': 'text/event-stream' } };

/** A body of two events, the second of which is held back. */
function heldBack() {
  const rest = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const events = ['data: 1\n\n', 'data: 2\n\n'];
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const event = events.shift();
      if (event === undefined) {
        controller.close();
        return;
      }
      if (events.length === 0) {
        await rest.promise;
      }
      controller.enqueue(Buffer.from(event));
    },
    cancel: () => left.resolve(),
  });
  const fetched = checkedFetch(async () => new Response(body, EVENTS))('https://model.example');
  return { fetched, release: () => rest.resolve(), left: left.promise };
}

it('passes on what has arrived before the rest does', async () => {
  const { fetched, release } = heldBack();
  const reader = (await fetched).body?.getReader();

  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 1\n\n');
  release();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 2\n\n');
  expect((await reader?.read())?.done).toBe(true);
});

it('leaves a server whose answer is read no further', async () => {
  const { fetched, left } = heldBack();

  await (await fetched).body?.cancel();
  await expect(left).resolves.toBeUndefined();
});

it('waits as long as it is told, where fetch itself gives up after five minutes, also by proxies that its first call sets up', async () => {
  const seen: unknown[] = [];
  const dispatcher = (by: string): object => ({
    dispatch: (options: object): boolean => {
      seen.push({ by, ...options });
      throw new Error('seen');
    },
  });
  const name = Symbol.for('undici.globalDispatcher.1');
  const before: unknown = Reflect.get(globalThis, name);
  const plain = globalThis.fetch;
  Reflect.set(globalThis, name, dispatcher('itself'));
  globalThis.fetch = async (input, init) => {
    Reflect.set(globalThis, name, dispatcher('a proxy'));
    return await plain(input, init);
  };
  try {
    await expect(idleTimeoutFetch(900_000)('http://model.example/')).rejects.toThrow('fetch failed');
  } finally {
    Reflect.set(globalThis, name, before);
    globalThis.fetch = plain;
  }

  expect(seen).toEqual([expect.objectContaining({ by: 'a proxy', headersTimeout: 0, bodyTimeout: 0 })]);
});
