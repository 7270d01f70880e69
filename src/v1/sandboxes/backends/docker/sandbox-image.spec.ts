import { expect, it } from '@jest/globals';
import { connectEngine } from './connect-engine.js';
import { ensureImage } from './sandbox-image.js';

// Nothing listens there: what is asked of the engine fails, and says so.
const NOWHERE = 'tcp://127.0.0.1:1';

async function ensure(image: string): Promise<void> {
  const wanted = { image, isOurs: false };
  await ensureImage(connectEngine(NOWHERE), wanted, () => undefined, new AbortController().signal);
}

it.each(['../containers/a/json?x=', 'a/../b', 'a?all=1', 'a b', '', '/a', 'a//b', 'a#b', 'a%2fb'])(
  'asks the engine nothing about %j',
  async (image) => {
    await expect(ensure(image)).rejects.toThrow('cannot be the name of an image');
  },
);

it.each([
  'debian',
  'slipway-agent-server',
  'ghcr.io/openhands/agent-server:1.2-python',
  'localhost:5000/team/a_b:x',
  `a@sha256:${'0'.repeat(64)}`,
])('asks about %s', async (image) => {
  await expect(ensure(image)).rejects.toThrow('no Docker engine answers');
});
