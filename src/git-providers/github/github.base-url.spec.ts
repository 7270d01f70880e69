import { describe, expect, it } from '@jest/globals';
import { githubBaseUrl } from './github.base-url.js';

describe('githubBaseUrl', () => {
  it.each([
    [null, 'https://api.github.com', 'https://api.github.com'],
    [null, 'http://127.0.0.1:9101/', 'http://127.0.0.1:9101'],
    [null, 'https://git.example.com/api/v3/', 'https://git.example.com/api/v3'],
    ['git.example.com', 'https://api.github.com', 'https://git.example.com/api/v3'],
    ['git.example.com:8443', 'https://api.github.com', 'https://git.example.com:8443/api/v3'],
    ['http://127.0.0.1:9101', 'https://api.github.com', 'http://127.0.0.1:9101/api/v3'],
    ['octo.ghe.com', 'https://api.github.com', 'https://api.octo.ghe.com'],
    ['ghe.com', 'https://api.github.com', 'https://ghe.com/api/v3'],
    ['octo.ghe.com.example.com', 'https://api.github.com', 'https://octo.ghe.com.example.com/api/v3'],
  ])('host %s with the default %s', (host, apiUrl, expected) => {
    expect(githubBaseUrl(host, apiUrl)).toBe(expected);
  });
});
