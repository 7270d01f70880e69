import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import request from 'supertest';
import path from 'node:path';
import { AGENT_IMAGE, DockerHarness } from '../../packages/sandboxes/src/docker/docker.harness.js';
import { processHarness } from '../../packages/sandboxes/src/process/process.sandbox-backend.harness.js';
import { SandboxCallback } from '../../src/v1/sandboxes/sandbox-callback.js';
import type { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { RunningSandboxQueries } from '../../src/v1/sandboxes/sandbox.queries.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { hasIsolatedProcesses, OWN_ADDRESS } from '../support/isolated-processes.js';
import { reservedPort } from '../support/reserved-port.js';
import { SandboxClient } from '../support/sandbox-client.js';
import { SandboxesClient } from '../support/sandboxes-client.js';
import { startListening, stopServer } from '../support/start-listening.js';
import { TEST_CERTIFICATE, TEST_PRIVATE_KEY } from '../support/tls-certificate.js';
import { until } from '../support/until.js';

/** Sandboxes of a backend, and the variables by which the service runs a proxy for them. */
interface Place {
  backend: SandboxBackend;
  environment: Record<string, string>;
  /** How the program of the proxy is known by its environment. */
  listen: string;
  close(): Promise<void>;
}

const PLACES: { name: string; isHere: boolean; make: (proxyPort: number) => Promise<Place> }[] = [
  {
    name: 'a process sandbox',
    isHere: hasIsolatedProcesses(),
    make: async (port) => {
      const harness = await processHarness('bwrap', { network: { mode: 'isolated', allow: [] } });
      const listen = `127.0.0.1:${port}`;
      const { backend } = harness;
      const close = async (): Promise<void> => await harness.close();
      return { backend, close, environment: { ALLOW_UNSANDBOXED: 'true' }, listen };
    },
  },
  {
    name: 'a container (SLIPWAY_TEST_DOCKER_IMAGE)',
    isHere: AGENT_IMAGE !== '',
    make: async () => {
      const harness = await DockerHarness.make('');
      return {
        backend: harness.backend,
        close: async () => await harness.close(),
        environment: {
          SANDBOX_BACKEND: 'docker',
          DATA_DIR: path.dirname(harness.socketFolder),
          HOST: '0.0.0.0',
        },
        listen: `unix:${harness.socketFolder}/`,
      };
    },
  },
];

const describeEach = (about: string, tests: (make: (proxyPort: number) => Promise<Place>) => void): void => {
  for (const { name, isHere, make } of PLACES) {
    const describeHere = isHere && OWN_ADDRESS !== undefined ? describe : describe.skip;
    describeHere(`${name} ${about}`, () => tests(make));
  }
};

describeEach('whose user has rules about what it may reach', (make) => {
  const host = String(OWN_ADDRESS);
  const servers: Server[] = [];
  let place: Place;
  let app: TestApp;
  let sandboxId: string;
  let inside: SandboxClient;
  let proxyPort: number;
  let before: string[];
  let [allowed, forbidden, opened] = ['', '', ''];

  async function serve(server: Server): Promise<string> {
    servers.push(server.on('request', (_, response) => response.end('reached')));
    return `${host}:${await startListening(server, 0, host)}`;
  }

  const curl = async (given: string): Promise<string> => {
    const { stdout, stderr } = await inside.run(`curl -sS -m 20 -w ' %{http_code}' ${given}`);
    return `${stdout}${stderr}`;
  };

  beforeAll(async () => {
    allowed = await serve(createServer());
    forbidden = await serve(createServer());
    opened = await serve(createTlsServer({ cert: TEST_CERTIFICATE, key: TEST_PRIVATE_KEY }));
    proxyPort = await reservedPort();
    place = await make(proxyPort);
    app = await createTestApp(
      {
        ...place.environment,
        SANDBOX_EGRESS_PORT: String(proxyPort),
        SANDBOX_NETWORK_ALLOW: `${host}/32`,
      },
      undefined,
      { sandboxBackend: place.backend, ownClock: true },
    );
    before = await pidsOfProxy(place.listen);
    await request(app.url)
      .post('/api/settings')
      .set(app.user.headers)
      .send({ sandbox_egress: { allow: [allowed, { host: opened, methods: ['GET'] }] } })
      .expect(200);
    const { id } = await new SandboxesClient(app.url, app.user).running();
    sandboxId = id;
    const target = await app.app.get(RunningSandboxQueries, { strict: false }).target(id);
    inside = new SandboxClient(target?.address ?? '', target?.sessionKey ?? '');
    await until(async () => (await curl(`http://${allowed}/`)) === 'reached 200');
  });

  afterAll(async () => {
    await app.close();
    await place.close();
    await Promise.all(servers.map(stopServer));
  });

  it('reaches what a rule names, and is told why it reaches nothing else', async () => {
    const refused = await curl(`-D - http://${forbidden}/`);
    expect(refused).toContain('X-Slipway-Egress: denied; reason=address');
    expect(refused).toMatch(/ 403$/);
    expect(await curl('-D - http://other.example/')).toContain('X-Slipway-Egress: denied; reason=rule');
    expect(await curl('https://other.example/')).toMatch(/CONNECT tunnel failed, response 403/);
  });

  it('reaches the service, by the address that it was told', async () => {
    const { origin } = new URL(app.app.get(SandboxCallback, { strict: false }).webhooksUrl);
    expect(await curl(`-o /dev/null ${origin}/health/live`)).toBe(' 200');
  });

  it('has no way around the proxy, whatever its programs make of their variables', async () => {
    const around = await inside.run(
      [
        `curl -sS -m 20 --noproxy '*' http://${allowed}/`,
        `env -i /bin/bash -c 'exec 3<>/dev/tcp/${allowed.replace(':', '/')}'`,
        "env -i /bin/bash -c 'exec 3<>/dev/udp/1.1.1.1/53 && echo x >&3'",
        'getent hosts other.example',
      ]
        .map((command) => `${command} >/dev/null 2>&1; echo $?`)
        .join('; '),
    );
    expect(around.stdout.trim().split('\n')).toEqual(['7', '1', '1', '2']);
  });

  it('is known to the proxy, which came with it, by its own credential alone', async () => {
    expect([before.length, (await pidsOfProxy(place.listen)).length]).toEqual([0, 1]);
    expect(await curl(`-x http://127.0.0.1:${proxyPort} http://${allowed}/`)).toMatch(/ 407$/);
    expect(await curl(`-x http://${sandboxId}:guess@127.0.0.1:${proxyPort} http://${allowed}/`)).toMatch(
      / 407$/,
    );
    expect(await curl(`http://127.0.0.1:${proxyPort}/api/v1/egress-proxy/policy`)).toMatch(/ 40\d$/);
  });

  it('trusts the authority by which TLS is opened where a rule is about methods', async () => {
    // The host's own certificate is not trusted, which only the proxy can say.
    expect(await curl(`https://${opened}/`)).toMatch(/certificate.* 502$/s);
    expect(await curl(`-D - -X POST https://${opened}/`)).toContain(
      'X-Slipway-Egress: denied; reason=method',
    );
  });

  it('goes on when the proxy has died', async () => {
    const [pid] = await pidsOfProxy(place.listen);
    process.kill(Number(pid), 'SIGKILL');
    await until(async () => (await pidsOfProxy(place.listen)).some((next) => next !== pid));
    await until(async () => (await curl(`http://${allowed}/`)) === 'reached 200');
    expect(await pidsOfProxy(place.listen)).toHaveLength(1);
  });

  it('has what it asked for listed', async () => {
    const log = async (): Promise<Record<string, unknown>[]> =>
      (
        await request(app.url)
          .get(`/api/v1/sandboxes/${sandboxId}/egress/log`)
          .set(app.user.headers)
          .expect(200)
      ).body;
    // What a proxy that was killed had not told yet is lost.
    await curl('http://other.example/');
    await curl(`-X POST https://${opened}/`);
    await curl(`http://${allowed}/last`);
    await until(async () => (await log()).some(({ path }) => path === '/last'));
    expect(await log()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ path: '/last', denied: null, rule: allowed, status: 200 }),
        expect.objectContaining({ host: 'other.example', denied: 'rule', rule: null }),
        expect.objectContaining({ method: 'POST', denied: 'method' }),
      ]),
    );
  });
});

async function pidsOfProxy(listen: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = pids.map(async (pid) => {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    return environment.split('\0').some((line) => line.startsWith(`EGRESS_PROXY_LISTEN=${listen}`))
      ? [pid]
      : [];
  });
  return (await Promise.all(found)).flat();
}
