import { afterEach, describe, expect, it } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer as createProxy, setGlobalProxyFromEnv } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, rootCertificates, setDefaultCACertificates } from 'node:tls';
import { temporaryFolder } from '../../../test/support/temporary-folder.js';
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from '../../../test/support/tls-certificate.js';
import { fetchInRanges, nodeProblem, OLDEST_NODE, ownNetwork, writeAuthorities } from './program.js';

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');

it.each([
  ['20.19.2', false],
  ['22.18.0', false],
  ['22.19.0', true],
  ['22.20.1', true],
  ['23.0.0', true],
  ['24.9.0', true],
])('Node.js %s suits: %s', (version, suits) => {
  expect(nodeProblem(version) === null).toBe(suits);
});

it('is what package.json says', () => {
  expect(JSON.parse(read('package.json'))).toMatchObject({ engines: { node: `>=${OLDEST_NODE}` } });
});

it('exempts an address within a range of NO_PROXY before it is called', async () => {
  const environment: NodeJS.ProcessEnv = { NO_PROXY: '10.0.0.0/8' };
  const seen: unknown[] = [];
  const fetch = fetchInRanges(() => {
    seen.push(environment['no_proxy']);
    return Promise.resolve(new Response());
  }, environment);
  await fetch(new Request('http://model.example/'));
  await fetch('http://10.2.3.4:8000/v1');

  expect(seen).toEqual([undefined, '10.0.0.0/8,10.2.3.4']);
});

it('has what it calls go by proxies that are named late, and what starts later use them', async () => {
  const proxied = Promise.withResolvers<string>();
  const proxy = createProxy().on('connect', ({ url = '' }, socket) => {
    proxied.resolve(url);
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const restore = setGlobalProxyFromEnv({ HTTPS_PROXY: 'http://127.0.0.1:1' });
  const environment: NodeJS.ProcessEnv = {
    HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    SLIPWAY_LATE_PROXY: '1',
  };
  try {
    const call = ownNetwork(environment).wrap(fetch);
    await expect(call('https://api.example/')).rejects.toThrow('fetch failed');
    expect(await proxied.promise).toBe('api.example:443');
    expect(environment['NODE_USE_ENV_PROXY']).toBe('1');
  } finally {
    restore();
    proxy.close();
  }
});

describe('the build of an image', () => {
  const [, run = ''] = /^RUN node -e '(.+?)'$/ms.exec(read('Dockerfile')) ?? [];
  const program = run.replaceAll('\\\n', '');

  it.each([
    ['20.20.2', 1, 'The base image has Node.js 20.20.2; Slipway needs 22.19 or newer\n'],
    ['22.18.0', 1, 'The base image has Node.js 22.18.0; Slipway needs 22.19 or newer\n'],
    [`${OLDEST_NODE}.0`, 0, ''],
    ['24.0.0', 0, ''],
  ])('on Node.js %s ends with %i', (version, status, message) => {
    const pretend = `Object.defineProperty(process, "versions", { value: { node: "${version}" } });`;
    const { stderr, ...ended } = spawnSync(process.execPath, ['-e', pretend + program], { encoding: 'utf8' });
    expect(program).not.toBe('');
    expect([ended.status, stderr]).toEqual([status, message]);
  });
});

describe('writeAuthorities', () => {
  const before = getCACertificates();
  const home = temporaryFolder();

  afterEach(() => {
    setDefaultCACertificates(before);
  });

  const trusting = async (
    environment: NodeJS.ProcessEnv,
    bundles: string[] = [],
  ): Promise<NodeJS.ProcessEnv> => {
    const own = { HOME: home(), SLIPWAY_AUTHORITY_0: TEST_CERTIFICATE, ...environment };
    await writeAuthorities(own, bundles);
    return own;
  };
  const file = (name: string, text: string): string => {
    writeFileSync(home(name), text);
    return home(name);
  };
  const text = ({ SSL_CERT_FILE: bundle = '' }: NodeJS.ProcessEnv): string => readFileSync(bundle, 'utf8');

  it('calls servers whose certificates they signed', async () => {
    const server = createServer({ cert: TEST_CERTIFICATE, key: TEST_PRIVATE_KEY }, (_, response) =>
      response.end('trusted'),
    ).listen(0);
    await once(server, 'listening');
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    const call = async (by: typeof fetch): Promise<string> => (await by(url)).text();
    try {
      await expect(call(fetch)).rejects.toThrow('fetch failed');
      const network = ownNetwork(await trusting({}));
      expect(await call(network.wrap(fetch))).toBe('trusted');
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("adds them to the image's own, or else to those of Node.js, in one file for all programs", async () => {
    const bundles = ['/no/such/file', file('system', 'SYSTEM'), file('other', 'OTHER')];
    expect(text(await trusting({}, bundles))).toBe(`SYSTEM\n${TEST_CERTIFICATE}\n`);
    expect(text(await trusting({ SSL_CERT_FILE: file('own', 'OWN') }, bundles))).toContain('OWN\n');
    expect(text(await trusting({ SSL_CERT_FILE: '/no/such/file' }))).toContain(rootCertificates[0]);
    const image = { REQUESTS_CA_BUNDLE: file('python', 'PYTHON'), NODE_EXTRA_CA_CERTS: file('node', 'NODE') };
    const environment = await trusting(image, bundles);
    expect(text(environment)).toBe(`SYSTEM\nPYTHON\nNODE\n${TEST_CERTIFICATE}\n`);
    expect(environment['NODE_EXTRA_CA_CERTS']).toBe(environment['SSL_CERT_FILE']);
  });

  it('gives Java the same ones, beside the options that it has', async () => {
    const environment = await trusting({ JAVA_TOOL_OPTIONS: '-Xmx1g' });
    const store = home('.authorities.jks');
    expect(environment['JAVA_TOOL_OPTIONS']).toBe(`-Djavax.net.ssl.trustStore=${store} -Xmx1g`);
    const bytes = readFileSync(store);
    expect([bytes.readUInt32BE(0), bytes.readUInt32BE(8)]).toEqual([0xfeedfeed, rootCertificates.length + 1]);
  });

  it('follows no link that a tool has put in the place of its files', async () => {
    const kept = file('kept', 'kept');
    symlinkSync(kept, home('.authorities.pem'));
    await trusting({});
    expect(readFileSync(kept, 'utf8')).toBe('kept');
  });

  it('changes nothing without any', async () => {
    const environment = { HOME: home() };
    await writeAuthorities(environment);
    expect(environment).toEqual({ HOME: home() });
    expect(existsSync(home('.authorities.pem'))).toBe(false);
  });
});
