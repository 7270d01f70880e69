import { expect, it } from '@jest/globals';
import { connectEngine } from './engine.js';
import { ensureImage, explainIncompatibleImage, PullProgress } from './images.js';

const NODE = '/opt/slipway/bin/node';

// As Debian's engine, its init and glibc's loader say it.
it.each([
  [
    `[FATAL tini (6)] exec ${NODE} failed: No such file or directory`,
    'it has no glibc (Alpine has musl instead)',
  ],
  [`[FATAL tini (7)] exec ${NODE} failed: Exec format error`, 'it is for another kind of processor'],
  [
    `${NODE}: error while loading shared libraries: libstdc++.so.6: cannot open shared object file: No such file or directory`,
    'it lacks libstdc++.so.6',
  ],
  [
    `${NODE}: /lib64/libc.so.6: version \`GLIBC_2.27' not found (required by ${NODE})\n${NODE}: /lib64/libc.so.6: version \`GLIBC_2.28' not found (required by ${NODE})`,
    'its libraries are too old, they lack GLIBC_2.27',
  ],
])('reads %j', (log, lack) => {
  expect(explainIncompatibleImage(`${log}\n`, 'a:1')).toContain(
    `The image a:1 cannot run our agent server: ${lack}. It takes`,
  );
});

it.each(['', 'listening on 8000\n', 'python: error while loading shared libraries: libz.so.1\n'])(
  'blames no image for %j',
  (log) => {
    expect(explainIncompatibleImage(log, 'a:1')).toBeNull();
  },
);

it('says once what is new about the layers', () => {
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
    'nothing of the kind',
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
