import { expect, it } from '@jest/globals';
import { listenUnassigned } from './start-agent-server.js';

it.each([
  ['::', ['127.0.0.1', '[::1]']],
  ['127.0.0.1', ['127.0.0.1']],
  ['::1', ['[::1]']],
])('listens on %s', async (host, reached) => {
  const server = await listenUnassigned({ host, port: 0, socket: null, relays: [], awaitNetwork: false });
  try {
    const alive = async (address: string) => (await fetch(`http://${address}:${server.port}/alive`)).status;
    expect(await Promise.all(reached.map(alive))).toEqual(reached.map(() => 200));
  } finally {
    await server.stop();
  }
});
