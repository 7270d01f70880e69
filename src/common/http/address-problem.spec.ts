import { describe, expect, it } from '@jest/globals';
import { addressProblem } from './address-problem.js';

const SCHEMES = ['http', 'https', 'ws', 'wss'];

describe('addressProblem', () => {
  it.each([
    'http://a',
    'https://mcp.example.com/sse?team=1#x',
    'ws://127.0.0.1:9000',
    'WSS://example.com',
    'http://[::1]:80/',
    'https://example.com//double//slash',
    'https://bücher.example',
  ])('accepts %s', (address) => {
    expect(addressProblem(address, SCHEMES)).toBeNull();
  });

  it.each([
    ['', 'empty'],
    ['x', 'starts with http://, https://, ws:// or wss://'],
    ['example.com:80', 'starts with'],
    ['http:/example.com', 'starts with'],
    ['://example.com', 'starts with'],
    ['ftp://x', 'scheme http, https, ws or wss'],
    ['constructor://x', 'scheme'],
    ['javascript://x', 'scheme'],
    ['http://', 'valid host'],
    ['http:///example.com', 'valid host'],
    ['http://?q', 'valid host'],
    ['http://:80', 'valid host'],
    ['http://a b', 'white space'],
    ['http://a\nb', 'white space'],
    ['http://allowed.example\\@other.example', 'backslashes'],
    ['https://user:secret@example.com', 'user name or password'],
    ['https://user@example.com', 'user name or password'],
  ])('refuses %j', (address, expected) => {
    expect(addressProblem(address, SCHEMES)).toContain(expected);
  });

  it('never repeats the address', () => {
    expect(addressProblem('https://user:hunter2@example.com', SCHEMES)).not.toContain('hunter2');
  });
});
