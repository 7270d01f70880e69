import { describe, expect, it } from '@jest/globals';
import { engineEndpoint, isLocalEngine, isSocketEngine } from './connect-engine.js';

describe('engineEndpoint', () => {
  it.each([
    ['unix:///run/docker.sock', { socketPath: '/run/docker.sock', host: undefined, port: undefined }],
    [
      'npipe:////./pipe/docker_engine',
      { socketPath: '//./pipe/docker_engine', host: undefined, port: undefined },
    ],
    ['tcp://10.0.0.5:2375', { socketPath: undefined, host: '10.0.0.5', port: 2375 }],
    ['tcp://engine', { socketPath: undefined, host: 'engine', port: 2375 }],
    ['https://engine', { socketPath: undefined, host: 'engine', port: 2376, protocol: 'https' }],
    ['https://engine:2376', { socketPath: undefined, host: 'engine', port: 2376, protocol: 'https' }],
  ])('reads %s', (dockerHost, expected) => {
    expect(engineEndpoint(dockerHost)).toEqual(expected);
  });

  it.each(['/run/docker.sock', 'ssh://me@engine', 'unix://', 'tcp://'])('refuses %s', (dockerHost) => {
    expect(() => engineEndpoint(dockerHost)).toThrow('DOCKER_HOST must be');
  });
});

it.each([
  [null, true],
  ['unix:///run/docker.sock', true],
  ['tcp://127.0.0.1:2375', true],
  ['tcp://localhost:2375', true],
  ['tcp://10.0.0.5:2375', false],
  ['tcp://engine:2375', false],
])('isLocalEngine(%s) is %s', (dockerHost, expected) => {
  expect(isLocalEngine(dockerHost)).toBe(expected);
});

it.each([
  [null, true],
  ['unix:///run/docker.sock', true],
  ['tcp://127.0.0.1:2375', false],
  ['https://engine', false],
])('isSocketEngine(%s) is %s', (dockerHost, expected) => {
  expect(isSocketEngine(dockerHost)).toBe(expected);
});
