import { describe, expect, it } from '@jest/globals';
import { parametersProblem, secretParameters } from './model-parameters.js';

describe('parametersProblem', () => {
  it.each([
    [{}, null],
    [{ extra_headers: { 'x-team': 'blue', Authorization: 'Bearer x' } }, null],
    [{ extra_headers: { Host: 'internal' } }, '"Host" is not a header'],
    [{ extra_headers: { 'content-length': '3' } }, '"content-length" is not a header'],
    [{ extra_headers: { 'two words': 'x' } }, '"two words" is not a header'],
    [{ extra_headers: { 'x-team': 'a\r\nx-other: b' } }, 'the value of x-team'],
    [{ extra_headers: { 'x-team': '日本' } }, 'the value of x-team'],
  ])('%j: %s', (parameters, problem) => {
    expect(parametersProblem(parameters)).toEqual(problem === null ? null : expect.stringContaining(problem));
  });
});

describe('secretParameters', () => {
  it.each([
    [{}, []],
    [{ extra_headers: { 'x-team': 'blue', 'api-key': 'k1' } }, ['k1', 'k1']],
    [{ extra_headers: { authorization: 'Bearer abc' } }, ['Bearer abc', 'abc']],
  ])('%j', (parameters, secrets) => {
    expect(secretParameters(parameters)).toEqual(secrets);
  });
});
