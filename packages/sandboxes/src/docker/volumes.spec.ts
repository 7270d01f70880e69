import { expect, it } from '@jest/globals';
import { type AgentServerVolume, readyMarkOf, readyVolume, staleVolumes } from './volumes.js';

const NOW = 10_000_000;
const files = (name: string, image = 'sha256:new', createdAt = 0): AgentServerVolume => ({
  name,
  image,
  createdAt,
});
const marked = (name: string, image?: string, createdAt?: number): AgentServerVolume[] => [
  files(readyMarkOf(name), image, createdAt),
  files(name, image, createdAt),
];

it.each([
  ['nothing from no volumes', [], null],
  ['nothing without a mark', [files('a')], null],
  ['nothing when the files of a mark are gone', [files(readyMarkOf('a'))], null],
  ['the marked volume', [files('a'), ...marked('b')], 'b'],
  ['always the same one of two', [...marked('b'), ...marked('a')], 'a'],
  ['nothing of another image', marked('a', 'sha256:old'), null],
])('readyVolume picks %s', (_, volumes, expected) => {
  expect(readyVolume(volumes, 'sha256:new')).toBe(expected);
});

it.each([
  ['nothing that is in use', marked('a'), 'sha256:new', []],
  ['volumes of another image', marked('a', 'sha256:old'), 'sha256:new', ['a-ready', 'a']],
  ['everything when the engine has no image', marked('a'), null, ['a-ready', 'a']],
  ['volumes without a mark', [...marked('a'), files('b')], 'sha256:new', ['b']],
  ['the second of two', [...marked('b'), ...marked('a')], 'sha256:new', ['b-ready', 'b']],
  ['nothing that may still be filled', [files('b', 'sha256:new', NOW - 1000)], 'sha256:new', []],
])('staleVolumes lists %s', (_, volumes, image, expected) => {
  expect(staleVolumes(volumes, image, NOW)).toEqual(expected);
});
