import { describe, expect, it } from '@jest/globals';
import { callbackProblem, callbackUrl, type CallbackFacts } from './sandbox-callback.js';

const FACTS: CallbackFacts = {
  backend: 'process',
  configured: null,
  host: '127.0.0.1',
  port: 3000,
  dockerNetwork: null,
  ownHostname: '0123456789ab',
  ownAddress: '10.0.0.9',
};

describe('callbackUrl', () => {
  it.each([
    [{}, 'http://127.0.0.1:3000'],
    [{ host: '0.0.0.0' }, 'http://127.0.0.1:3000'],
    [{ host: '::' }, 'http://127.0.0.1:3000'],
    [{ host: '::1' }, 'http://[::1]:3000'],
    [{ host: 'localhost', port: 80 }, 'http://localhost:80'],
    [{ host: '10.0.0.5' }, 'http://10.0.0.5:3000'],
    [{ configured: 'https://slipway.example.com' }, 'https://slipway.example.com'],
    [{ backend: 'docker' as const }, 'http://host.docker.internal:3000'],
    [{ backend: 'docker' as const, dockerNetwork: 'net' }, 'http://0123456789ab:3000'],
    [
      { backend: 'docker' as const, dockerNetwork: 'net', configured: 'http://slipway:3000' },
      'http://slipway:3000',
    ],
    [{ backend: 'kubernetes' as const, host: '0.0.0.0' }, 'http://10.0.0.9:3000'],
    [{ backend: 'kubernetes' as const, host: '::', ownAddress: 'fd00::9' }, 'http://[fd00::9]:3000'],
    [{ backend: 'kubernetes' as const, host: '::', ownAddress: null }, 'http://0123456789ab:3000'],
    [{ backend: 'kubernetes' as const, host: '10.0.0.5' }, 'http://10.0.0.5:3000'],
  ])('%j: %s', (facts, expected) => {
    expect(callbackUrl({ ...FACTS, ...facts })).toBe(expected);
  });
});

describe('callbackProblem', () => {
  it.each([
    [{}, false],
    [{ host: '::' }, false],
    [{ host: '::1' }, true],
    [{ backend: 'docker' as const }, true],
    [{ backend: 'docker' as const, host: 'localhost' }, true],
    [{ backend: 'kubernetes' as const }, true],
    [{ backend: 'kubernetes' as const, host: '0.0.0.0' }, false],
    [{ backend: 'docker' as const, host: '0.0.0.0' }, false],
    [{ backend: 'docker' as const, dockerNetwork: 'net' }, false],
    [{ backend: 'docker' as const, configured: 'http://10.0.0.5:3000' }, false],
  ])('%j: %s', (facts, problem) => {
    expect(callbackProblem({ ...FACTS, ...facts }) !== null).toBe(problem);
  });
});
