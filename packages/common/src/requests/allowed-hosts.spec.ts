import { describe, expect, it } from '@jest/globals';
import { AllowedHosts } from './allowed-hosts.js';

const own = (name: string): boolean => name === 'slipway.example.com';

describe('AllowedHosts', () => {
  it.each([
    [undefined, true],
    ['127.0.0.1', true],
    ['127.0.0.1:3000', true],
    ['10.0.2.2:3000', true],
    ['[::1]:3000', true],
    ['localhost:3000', true],
    ['LOCALHOST.', true],
    ['worker-1-abc.localhost:3000', true],
    ['slipway.example.com', true],
    ['Slipway.Example.Com:443', true],
    ['slipway.example.com.:443', true],
    ['evil.example', false],
    ['evil.example:3000', false],
    ['evil.example:3000:3000', false],
    ['localhost.evil.example', false],
    ['notlocalhost', false],
    ['slipway.example.com.evil.example', false],
    ['evil.example:@localhost', false],
    ['127.0.0.1.evil.example', false],
    ['[evil.example]', false],
    ['2130706433', false],
    ['', false],
  ])('of a listener on loopback: %j is %j', (host, expected) => {
    for (const listenHost of ['127.0.0.1', '127.0.0.2', '::1', 'localhost']) {
      const hosts = new AllowedHosts({ listenHost, configured: [], isOwn: own });
      expect(hosts.accepts({ headers: host === undefined ? {} : { host } })).toBe(expected);
    }
  });

  it.each(['0.0.0.0', '::', '10.0.0.5', 'slipway.internal'])(
    'of a listener on %s: every name',
    (listenHost) => {
      const hosts = new AllowedHosts({ listenHost, configured: [] });

      expect(hosts.accepts({ headers: { host: 'slipway.default.svc.cluster.local' } })).toBe(true);
    },
  );

  it.each([
    ['slipway.internal', true],
    ['a.example.com', true],
    ['a.b.example.com', true],
    ['example.com', false],
    ['xexample.com', false],
    ['10.0.0.5', true],
    ['slipway.example.com', true],
    ['evil.example', false],
  ])('of any listener once the operator has named some: %s is %j', (host, expected) => {
    const configured = ['Slipway.internal', '*.example.com'];
    for (const listenHost of ['0.0.0.0', '127.0.0.1']) {
      const hosts = new AllowedHosts({ listenHost, configured, isOwn: own });
      expect(hosts.accepts({ headers: { host } })).toBe(expected || host === 'slipway.example.com');
    }
  });
});
