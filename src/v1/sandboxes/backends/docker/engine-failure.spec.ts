import { describe, expect, it } from '@jest/globals';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import { engineFailure, engineStatus } from './engine-failure.js';

describe('engineFailure', () => {
  it.each([
    [
      Object.assign(new Error('(HTTP code 404) no such image - No such image: x '), {
        statusCode: 404,
        json: { message: 'No such image: x' },
      }),
      'it failed: No such image: x',
    ],
    [
      Object.assign(new Error('(HTTP code 500) server error - toomanyrequests: slow down '), {
        statusCode: 500,
        json: null,
      }),
      'it failed: toomanyrequests: slow down',
    ],
    [
      Object.assign(new Error('connect ENOENT /x'), { code: 'ENOENT' }),
      /^it failed: no Docker engine answers \(ENOENT\)/,
    ],
    [Object.assign(new Error('connect EACCES /x'), { code: 'EACCES' }), /^it failed: this user may not use/],
    [
      Object.assign(new Error('(HTTP code 500) server error - mkdir /x: no space left on device'), {
        statusCode: 500,
        json: { message: 'mkdir /x: no space left on device' },
      }),
      /^it failed: mkdir \/x: no space left on device \(the disk of the Docker engine is full: remove sandboxes/,
    ],
    [new Error('something else'), 'it failed: something else'],
  ])('%s', (cause, expected) => {
    const failure = engineFailure('it failed', cause);
    expect(failure.message).toMatch(expected);
    expect(failure.cause).toBe(cause);
  });

  it('leaves alone what was said already', () => {
    const failure = new SandboxBackendError('said');
    expect(engineFailure('it failed', failure)).toBe(failure);
  });
});

it('engineStatus knows the engine from other failures', () => {
  expect(engineStatus(Object.assign(new Error('x'), { statusCode: 409 }))).toBe(409);
  expect(engineStatus(new Error('x'))).toBeNull();
});
