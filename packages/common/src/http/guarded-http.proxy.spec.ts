import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import { connect } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { errorMessage } from '../errors/error-message.js';
import { HostAllowlist } from './host-allowlist.js';
import { startListening } from '../../../../test/support/start-listening.js';
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from '../../../../test/support/tls-certificate.js';
import { upstreamFailure } from '../../../../test/support/upstream-failure.js';
import { GuardedHttpClient } from './guarded-http.client.js';

const AUTHORIZATION = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;

describe('GuardedHttpClient over TLS and through a proxy', () => {
  let target: TlsServer;
  let targetPort: number;
  let proxy: Server;
  let proxyPort: number;
  let client: GuardedHttpClient | undefined;
  /** What the proxy was asked for. */
  let asked: { line: string; authorization: string | undefined }[];
  const authorities = getCACertificates();

  beforeAll(() => {
    setDefaultCACertificates([...authorities, TEST_CERTIFICATE]);
  });

  afterAll(() => {
    setDefaultCACertificates(authorities);
  });

  beforeEach(async () => {
    asked = [];
    target = createTlsServer({ cert: TEST_CERTIFICATE, key: TEST_PRIVATE_KEY }, (request, response) => {
      response.end(
        JSON.stringify({ host: request.headers.host, authorization: request.headers.authorization }),
      );
    });
    targetPort = await startListening(target);
    proxy = createServer((request, response) => {
      asked.push({ line: `${request.method} ${request.url}`, authorization: undefined });
      response.writeHead(500).end();
    });
    proxy.on('connect', (request, tunnel, head) => {
      asked.push({ line: `CONNECT ${request.url}`, authorization: request.headers['proxy-authorization'] });
      const refusal =
        request.headers['proxy-authorization'] !== AUTHORIZATION
          ? 'HTTP/1.1 407 Proxy Authentication Required'
          : request.url === 'git.example.com:443'
            ? null
            : 'HTTP/1.1 403 Forbidden';
      if (refusal !== null) {
        tunnel.end(`${refusal}\r\nContent-Type: text/html\r\n\r\n<html>Access denied</html>`);
        return;
      }
      const upstream = connect(targetPort, '127.0.0.1', () => {
        tunnel.write('HTTP/1.1 200 Connection established\r\n\r\n');
        upstream.write(head);
        upstream.pipe(tunnel).pipe(upstream);
      });
      upstream.on('error', () => tunnel.destroy());
      tunnel.on('error', () => upstream.destroy());
    });
    proxyPort = await startListening(proxy);
  });

  afterEach(async () => {
    await client?.close();
    client = undefined;
    for (const server of [target, proxy]) {
      server.closeAllConnections();
      server.close();
    }
  });

  function clientFor(allowed: string[], noProxy?: string, password = 'p%40ss'): GuardedHttpClient {
    client = new GuardedHttpClient({
      allowlist: HostAllowlist.parse(allowed),
      maxResponseBytes: 1000,
      timeoutMs: 20_000,
      proxy: {
        url: `http://user:${password}@127.0.0.1:${proxyPort}`,
        ...(noProxy === undefined ? {} : { noProxy }),
      },
      lookup: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
    });
    return client;
  }

  it('tunnels through the proxy, which resolves the name', async () => {
    const response = await clientFor([]).fetch('https://git.example.com/x', {
      headers: { authorization: 'secret' },
    });

    expect(await response.json()).toEqual({ host: 'git.example.com', authorization: 'secret' });
    expect(asked).toEqual([
      {
        line: 'CONNECT git.example.com:443',
        authorization: AUTHORIZATION,
      },
    ]);
  });

  it('reuses the tunnel', async () => {
    const reusing = clientFor([]);
    await reusing.fetch('https://git.example.com/1');
    await new Promise((resolve) => setImmediate(resolve));
    await reusing.fetch('https://git.example.com/2');

    expect(asked).toHaveLength(1);
  });

  it.each(['https://127.0.0.1/', 'https://localhost/', 'https://git.internal/', 'http://git.example.com/'])(
    'refuses %s before the proxy is asked',
    async (url) => {
      expect((await upstreamFailure(clientFor([]).fetch(url))).reason).toBe('refused');
      expect(asked).toEqual([]);
    },
  );

  it.each([
    ['p%40ss', 'https://unknown.example.com/', /^the proxy answered 403: .*NO_PROXY/],
    ['other', 'https://git.example.com/', /^the proxy answered 407: HTTPS_PROXY/],
  ])('says what a proxy refuses, with password %s, without its address', async (password, url, expected) => {
    const { reason, message, cause } = await upstreamFailure(clientFor([], '', password).fetch(url));

    expect(reason).toBe('network');
    expect(errorMessage(cause)).toMatch(expected);
    expect(`${message} ${String(cause)}`).not.toMatch(/127\.0\.0\.1|p@ss|p%40ss|other/);
  });

  it('says where to put an authority that is not known', async () => {
    setDefaultCACertificates(authorities);
    const { cause } = await upstreamFailure(clientFor([]).fetch('https://git.example.com/'));
    setDefaultCACertificates([...authorities, TEST_CERTIFICATE]);

    expect(errorMessage(cause)).toMatch(/NODE_EXTRA_CA_CERTS .*SELF_SIGNED/);
  });

  it('reports a proxy that is not there', async () => {
    const proxied = clientFor([]);
    proxy.close();

    expect((await upstreamFailure(proxied.fetch('https://git.example.com/'))).reason).toBe('network');
  });

  it('calls allowlisted loopback directly, over verified TLS', async () => {
    const origin = `https://localhost:${targetPort}`;
    const response = await clientFor([origin]).fetch(origin);

    expect(await response.json()).toEqual({ host: `localhost:${targetPort}` });
    expect(asked).toEqual([]);
  });

  it('does not trust a certificate of another name', async () => {
    const origin = `https://127.0.0.1:${targetPort}`;

    expect((await upstreamFailure(clientFor([origin]).fetch(origin))).reason).toBe('network');
  });

  it('calls NO_PROXY hosts directly, with the address check', async () => {
    const origin = `https://git.example.com:${targetPort}`;

    const refused = await upstreamFailure(clientFor([], 'example.com').fetch(origin));
    expect(refused.reason).toBe('refused');
    await client?.close();
    expect((await clientFor([origin], 'example.com').fetch(origin)).status).toBe(200);
    expect(asked).toEqual([]);
  });

  it.each(['user:secret@proxy:8080', 'http://user:secret@proxy:x', 'socks5://user:secret@proxy'])(
    'refuses the proxy address %s without repeating it',
    (url) => {
      const allowlist = HostAllowlist.parse([]);

      expect(
        () => new GuardedHttpClient({ allowlist, maxResponseBytes: 1, timeoutMs: 1, proxy: { url } }),
      ).toThrow(/^The proxy address is not an http or https URL\.$/);
    },
  );
});
