import { expect, it } from '@jest/globals';
import { PullProgress } from './pull-progress.js';

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
