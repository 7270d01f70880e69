import { expect, it } from '@jest/globals';
import { connectEngine } from './engine.js';
import { ensureImage, PullProgress } from './images.js';

it('reports each change of the layers once', () => {
  const progress = new PullProgress('a:1');
  const loading = (id: string, current: number) => ({
    id,
    status: 'Downloading',
    progressDetail: { current },
  });
  const lines = [
    { id: '1', status: 'Pulling from a' },
    { id: 'x', status: 'Pulling fs layer', progressDetail: {} },
    { id: 'y', status: 'Already exists' },
    loading('x', 4_000_000),
    loading('x', 6_000_000),
    loading('z', 5_000_000),
    { id: 'x', status: 'Download complete' },
    { id: 'x', status: 'Extracting', progressDetail: { current: 9_000_000 } },
    { id: 'x', status: 'Pull complete' },
    { status: 'Digest: sha256:0' },
    'not an event',
  ].map((event) => progress.next(event));
  expect(lines).toEqual([
    'pulling the image a:1',
    'pulling the image a:1, 0 of 1 layers',
    'pulling the image a:1, 1 of 2 layers',
    null,
    'pulling the image a:1, 1 of 2 layers, 5 MB loaded',
    'pulling the image a:1, 1 of 3 layers, 10 MB loaded',
    null,
    'pulling the image a:1, 1 of 3 layers, 10 MB loaded, 5 MB unpacked',
    'pulling the image a:1, 2 of 3 layers, 10 MB loaded, 5 MB unpacked',
    null,
    null,
  ]);
});

// Nothing listens there, so that every call of the engine fails with a message that says so.
const NOWHERE = 'tcp://127.0.0.1:1';

async function ensure(image: string): Promise<void> {
  const requested = { image, isOurs: false };
  await ensureImage(connectEngine(NOWHERE), requested, () => undefined, new AbortController().signal);
}

it.each(['../containers/a/json?x=', 'a/../b', 'a?all=1', 'a b', '', '/a', 'a//b', 'a#b', 'a%2fb'])(
  'does not ask the engine about %j',
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
])('asks the engine about %s', async (image) => {
  await expect(ensure(image)).rejects.toThrow('no Docker engine answers');
});
