import { expect, it } from '@jest/globals';
import { until } from '../../../test/support/until.js';
import { listenUnassigned } from './start-agent-server.js';

const OPTIONS = { host: '127.0.0.1', port: 0, socket: null, relays: [], awaitNetwork: false };

it.each([
  ['::', ['127.0.0.1', '[::1]']],
  ['127.0.0.1', ['127.0.0.1']],
  ['::1', ['[::1]']],
])('listens on %s', async (host, reached) => {
  const server = await listenUnassigned({ ...OPTIONS, host });
  try {
    const alive = async (address: string) => (await fetch(`http://${address}:${server.port}/alive`)).status;
    expect(await Promise.all(reached.map(alive))).toEqual(reached.map(() => 200));
  } finally {
    await server.stop();
  }
});

it('prepares its network while it waits for its session key', async () => {
  let isPrepared = false;
  const server = await listenUnassigned(OPTIONS, () => {
    isPrepared = true;
  });
  try {
    await until(() => isPrepared);
    expect((await fetch(`http://127.0.0.1:${server.port}/alive`)).status).toBe(200);
  } finally {
    await server.stop();
  }
});
