import { describe, expect, it } from '@jest/globals';
import { cloneUrl } from './clone-url.js';

const GITHUB = { api: 'https://api.github.com', clone: 'https://github.com' };

describe('cloneUrl', () => {
  it.each([
    ['the usual place', undefined, 'https://api.github.com', 'https://github.com'],
    ['what the operator says', 'https://mirror.example', 'https://api.github.com', 'https://mirror.example'],
    ['the host of an Enterprise Server', undefined, 'https://git.example/api/v3', 'https://git.example'],
    ['the host behind a name of the API', undefined, 'https://api.acme.ghe.com', 'https://acme.ghe.com'],
    ['another port of this machine', undefined, 'http://127.0.0.1:9101', 'http://127.0.0.1:9101'],
  ])('is %s', (_, given, apiUrl, expected) => {
    expect(cloneUrl(given, apiUrl, GITHUB)).toBe(expected);
  });
});
