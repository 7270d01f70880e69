import type { LookupAddress } from 'node:dns';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HostAllowlist } from './host-allowlist.js';
import { FakeServer } from '../../../../test/fakes/fake-server.js';
import { upstreamFailure } from '../../../../test/support/upstream-failure.js';
import { GuardedHttpClient } from './guarded-http.client.js';

const LOOPBACK: LookupAddress = { address: '127.0.0.1', family: 4 };

describe('which addresses GuardedHttpClient calls', () => {
  let server: FakeServer;
  let client: GuardedHttpClient;
  let port: string;
  let asked: string[];
  let names: Record<string, LookupAddress[]>;

  beforeEach(async () => {
    server = await FakeServer.start(() => ({ body: 'ok' }));
    port = new URL(server.origin).port;
    asked = [];
    names = {};
    client = clientFor();
  });

  afterEach(async () => {
    await client.close();
    await server.close();
  });

  function clientFor(...allowed: string[]): GuardedHttpClient {
    return new GuardedHttpClient({
      allowlist: HostAllowlist.parse(allowed),
      maxResponseBytes: 1000,
      timeoutMs: 20_000,
      lookup: (hostname) => {
        asked.push(hostname);
        return Promise.resolve(names[hostname] ?? []);
      },
    });
  }

  it.each([
    'http://git.example.com/',
    'http://127.0.0.1/',
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://169.254.169.254/latest/meta-data',
    'https://93.184.216.34/',
    'https://localhost/',
    'https://metadata.google.internal/',
    'https://user@git.example.com/',
    'https://:password@git.example.com/',
    'ftp://git.example.com/',
    'file:///etc/passwd',
    'not an address',
    '',
  ])('refuses %j without asking anyone', async (url) => {
    const error = await upstreamFailure(client.fetch(url));

    expect(error.reason).toBe('refused');
    expect(error.message).not.toMatch(/password|meta-data|passwd/);
    expect(asked).toEqual([]);
  });

  it.each<[string, LookupAddress[]]>([
    ['loopback', [LOOPBACK]],
    ['a public and a private address', [{ address: '93.184.216.34', family: 4 }, LOOPBACK]],
  ])('refuses a name that resolves to %s', async (_name, addresses) => {
    names['git.example.com'] = addresses;

    const error = await upstreamFailure(client.fetch(`https://git.example.com:${port}/`));

    expect(error.reason).toBe('refused');
    expect(`${error.message} ${String(error.cause)}`).not.toMatch(/127\./);
    expect(asked).toEqual(['git.example.com']);
    expect(server.requests).toHaveLength(0);
  });

  it('reports a name that does not resolve as a network failure', async () => {
    expect((await upstreamFailure(client.fetch('https://git.example.com/'))).reason).toBe('network');
  });

  it('checks again for each new connection', async () => {
    names['git.example.com'] = [];
    await upstreamFailure(client.fetch('https://git.example.com/'));
    names['git.example.com'] = [LOOPBACK];

    expect((await upstreamFailure(client.fetch('https://git.example.com/'))).reason).toBe('refused');
    expect(asked).toHaveLength(2);
  });

  it('calls an allowlisted loopback origin, and only that one', async () => {
    await client.close();
    client = clientFor(server.origin);
    const other = await FakeServer.start(() => ({ body: 'other' }));

    expect((await client.fetch(`${server.origin}/x`)).status).toBe(200);
    expect((await upstreamFailure(client.fetch(other.origin))).reason).toBe('refused');
    expect(other.requests).toHaveLength(0);
    await other.close();
  });

  it.each([
    ['loopback', LOOPBACK],
    ["AWS's metadata over IPv6", { address: 'fd00:ec2::254', family: 6 }],
  ])('refuses a name under a wildcard that resolves to %s', async (_name, address) => {
    await client.close();
    client = clientFor(`*.corp.example.com:${port}`);
    const host = 'git.corp.example.com';

    for (const addresses of [[address], [{ address: '10.0.0.7', family: 4 }, address]]) {
      names[host] = addresses;
      const error = await upstreamFailure(client.fetch(`https://${host}:${port}/`));
      expect(error.reason).toBe('refused');
    }
    expect(server.requests).toHaveLength(0);
  });

  it('dials a private address of a name under a wildcard', async () => {
    await client.close();
    client = clientFor('*.corp.example.com');
    names['git.corp.example.com'] = [{ address: '10.255.255.1', family: 4 }];

    // Nothing listens there: it was dialled.
    const failure = upstreamFailure(client.fetch('https://git.corp.example.com/', { timeoutMs: 200 }));
    expect(['network', 'timeout']).toContain((await failure).reason);
  });

  it('dials loopback of a name under a wildcard whose origin is listed as well', async () => {
    await client.close();
    client = clientFor(`*.corp.example.com:${port}`, `https://git.corp.example.com:${port}`);
    names['git.corp.example.com'] = [LOOPBACK];

    // The server speaks no TLS: it was dialled.
    expect((await upstreamFailure(client.fetch(`https://git.corp.example.com:${port}/`))).reason).toBe(
      'network',
    );
  });

  it('dials what an allowlisted name resolves to, private or not', async () => {
    await client.close();
    client = clientFor(`http://git.corp:${port}`);
    names['git.corp'] = [LOOPBACK];

    const response = await client.fetch(`http://git.corp:${port}/x`);

    expect(response.status).toBe(200);
    expect(server.requests[0]?.headers.host).toBe(`git.corp:${port}`);
  });
});
