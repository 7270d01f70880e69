import { expect, it } from '@jest/globals';
import { PullProgress } from './pull-progress.js';

it('says once what is new about the layers', () => {
  const progress = new PullProgress('a:1');
  const lines = [
    { id: '1', status: 'Pulling from a' },
    { id: 'x', status: 'Pulling fs layer' },
    { id: 'y', status: 'Already exists' },
    { id: 'x', status: 'Downloading' },
    { id: 'x', status: 'Downloading' },
    { id: 'x', status: 'Pull complete' },
    { id: null, status: 'Digest: sha256:0' },
  ].map((event) => progress.next(event));
  expect(lines).toEqual([
    'pulling the image a:1',
    'pulling the image a:1, 0 of 1 layers',
    'pulling the image a:1, 1 of 2 layers',
    null,
    null,
    'pulling the image a:1, 2 of 2 layers',
    null,
  ]);
});
