import { describe, expect, it } from '@jest/globals';
import { gitServerApiUrl } from './task-forges.js';

const GITHUB = 'https://api.github.com';

describe('forgeApiUrl', () => {
  it.each([
    ['github', 'https://api.github.com', GITHUB, 'https://api.github.com'],
    ['github', 'http://127.0.0.1:9101', 'http://127.0.0.1:9101/', 'http://127.0.0.1:9101'],
    ['github', 'https://git.example.com', 'https://git.example.com/api/v3', 'https://git.example.com/api/v3'],
    ['github', 'https://git.example.com', GITHUB, 'https://git.example.com/api/v3'],
    ['github', 'https://api.acme.ghe.com', GITHUB, 'https://api.acme.ghe.com'],
    ['gitlab', 'https://gitlab.com/api', GITHUB, 'https://gitlab.com/api/v4'],
    ['bitbucket', 'https://api.bitbucket.org/2.0', GITHUB, 'https://api.bitbucket.org/2.0'],
    ['bitbucket_dc', 'https://git.example.com/ctx', GITHUB, 'https://git.example.com/ctx/rest/api/1.0'],
  ] as const)('of %s at %s', (kind, server, githubApiUrl, expected) => {
    expect(gitServerApiUrl(kind, server, githubApiUrl)).toBe(expected);
  });
});
