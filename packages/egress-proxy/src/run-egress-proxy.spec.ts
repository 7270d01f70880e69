import { describe, expect, it } from '@jest/globals';
import { Readable } from 'node:stream';
import { readConfiguration } from './run-egress-proxy.js';

const given = { EGRESS_PROXY_SERVICE_URL: 'http://127.0.0.1:3000' };
const input = (text: string) => Readable.from([text]);

describe('readConfiguration', () => {
  it('has a key from standard input, and says the rest itself', async () => {
    const configuration = await readConfiguration(given, input('the-key\nmore'));
    expect(configuration).toEqual({
      listen: [{ host: '127.0.0.1', port: 3128, reusePort: true }],
      hosts: new Map(),
      service: new URL('http://127.0.0.1:3000'),
      key: 'the-key',
      graceMs: 10_000,
      isWatched: true,
    });
  });

  it('shows the first of two keys, of which one replaces the other', async () => {
    expect(await readConfiguration(given, input('new, old\n'))).toMatchObject({ key: 'new' });
  });

  it('listens where it is told', async () => {
    const EGRESS_PROXY_LISTEN = '0.0.0.0:0, [::]:3128,unix:/run/egress.sock';
    const { listen } = await readConfiguration({ ...given, EGRESS_PROXY_LISTEN }, input('k'));
    expect(listen).toEqual([
      { host: '0.0.0.0', port: 0, reusePort: true },
      { host: '::', port: 3128, reusePort: true },
      { path: '/run/egress.sock', readableAll: true, writableAll: true },
    ]);
  });

  it('knows names that the resolver does not', async () => {
    const EGRESS_PROXY_HOSTS = 'host.docker.internal=127.0.0.1,other=::1';
    const { hosts } = await readConfiguration({ ...given, EGRESS_PROXY_HOSTS }, input('k'));
    expect([...hosts]).toEqual([
      ['host.docker.internal', '127.0.0.1'],
      ['other', '::1'],
    ]);
  });

  it.each<[string, Record<string, string>, string]>([
    ['EGRESS_PROXY_SERVICE_URL', { EGRESS_PROXY_SERVICE_URL: 'service' }, 'k'],
    ['EGRESS_PROXY_SERVICE_URL', { EGRESS_PROXY_SERVICE_URL: 'ftp://service' }, 'k'],
    ['EGRESS_PROXY_LISTEN', { EGRESS_PROXY_LISTEN: '3128' }, 'k'],
    ['EGRESS_PROXY_LISTEN', { EGRESS_PROXY_LISTEN: '127.0.0.1:99999' }, 'k'],
    ['EGRESS_PROXY_LISTEN', { EGRESS_PROXY_LISTEN: '::1:3128' }, 'k'],
    ['EGRESS_PROXY_GRACE_SECONDS', { EGRESS_PROXY_GRACE_SECONDS: 'long' }, 'k'],
    ['EGRESS_PROXY_HOSTS', { EGRESS_PROXY_HOSTS: 'name=other.name' }, 'k'],
    ['EGRESS_PROXY_HOSTS', { EGRESS_PROXY_HOSTS: 'name' }, 'k'],
    ['EGRESS_PROXY_KEY_FILE', {}, '\n'],
    ['/no/such/key', { EGRESS_PROXY_KEY_FILE: '/no/such/key' }, 'k'],
  ])('says what is wrong with %s: %j', async (name, changes, text) => {
    await expect(readConfiguration({ ...given, ...changes }, input(text))).rejects.toThrow(name);
  });
});
