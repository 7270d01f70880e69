import { expect, it } from '@jest/globals';
import { type AgentFiles, leftAgentFiles, markOf, readyVolume } from './agent-files.js';

const NOW = 10_000_000;
const files = (name: string, image = 'sha256:new', createdAt = 0): AgentFiles => ({ name, image, createdAt });
const marked = (name: string, image?: string, createdAt?: number): AgentFiles[] => [
  files(markOf(name), image, createdAt),
  files(name, image, createdAt),
];

it.each([
  ['nothing', [], null],
  ['files that nobody marked', [files('a')], null],
  ['a mark whose files are gone', [files(markOf('a'))], null],
  ['what is marked', [files('a'), ...marked('b')], 'b'],
  ['one of two, always the same', [...marked('b'), ...marked('a')], 'a'],
  ['no files of another image', marked('a', 'sha256:old'), null],
])('readyVolume takes %s', (_, volumes, expected) => {
  expect(readyVolume(volumes, 'sha256:new')).toBe(expected);
});

it.each([
  ['nothing of what is in use', marked('a'), 'sha256:new', []],
  ['what is of another image', marked('a', 'sha256:old'), 'sha256:new', ['a-ready', 'a']],
  ['everything where there is no image', marked('a'), null, ['a-ready', 'a']],
  ['what was never marked', [...marked('a'), files('b')], 'sha256:new', ['b']],
  ['the second of two', [...marked('b'), ...marked('a')], 'sha256:new', ['b-ready', 'b']],
  ['nothing that may be just being filled', [files('b', 'sha256:new', NOW - 1000)], 'sha256:new', []],
])('leftAgentFiles lists %s', (_, volumes, image, expected) => {
  expect(leftAgentFiles(volumes, image, NOW)).toEqual(expected);
});
