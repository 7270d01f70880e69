import { describe, expect, it } from '@jest/globals';
import { bypassesProxy } from './no-proxy.js';

describe('bypassesProxy', () => {
  it.each<[string, string, boolean]>([
    ['', 'https://git.example.com', false],
    ['*', 'https://git.example.com', true],
    ['git.example.com', 'https://git.example.com', true],
    ['GIT.Example.com', 'https://git.example.com.', true],
    ['example.com', 'https://git.example.com', true],
    ['example.com', 'https://badexample.com', false],
    ['.example.com', 'https://git.example.com', true],
    ['.example.com', 'https://example.com', false],
    ['*.example.com', 'https://git.example.com', true],
    ['*.example.com', 'https://example.com', false],
    ['a.example, b.example', 'https://b.example', true],
    ['a.example b.example', 'https://b.example', true],
    ['a.example,,', 'https://b.example', false],
    ['git.example.com:8443', 'https://git.example.com:8443', true],
    ['git.example.com:8443', 'https://git.example.com', false],
    ['git.example.com:443', 'https://git.example.com', true],
    ['git.example.com:80', 'http://git.example.com', true],
    ['10.0.0.7', 'https://10.0.0.7', true],
    ['::1', 'https://[::1]', true],
    ['[::1]', 'https://[::1]', true],
    ['[::1]:8443', 'https://[::1]:8443', true],
    ['[::1]:8443', 'https://[::1]', false],
  ])('%j and %s: %s', (noProxy, address, bypassed) => {
    expect(bypassesProxy(new URL(address), noProxy)).toBe(bypassed);
  });
});
