import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import { until } from '../../../../test/support/until.js';
import { sandboxLaunch } from '../../../../test/support/sandbox-launch.js';
import { DockerSandboxBackend } from './docker.backend.js';

const IMAGE = 'stock';
const LABELS = { 'slipway.instance': 'test', 'slipway.created-at': '1' };
const signal = new AbortController().signal;

/** What these tests need of an engine: containers by name, and one image that has everything. */
class FakeEngine {
  readonly calls: string[] = [];
  readonly containers = new Map<string, { network: string; user: string; isRunning: boolean }>();
  /** Answers of calls that are to fail, or to wait. */
  readonly instead = new Map<string, () => Promise<number>>();
  isRootless = false;
  /** Mounts of the service's own container. */
  mounts: object[] = [];
  private readonly relays: Server[] = [];
  private readonly server: Server;

  constructor(private readonly folder: string) {
    this.server = createServer((request, response) => {
      const url = new URL(request.url ?? '', 'http://engine');
      const method = request.method ?? '';
      const call = `${method} ${url.pathname}`;
      this.calls.push(call);
      const answer = async (): Promise<[number, unknown]> => {
        const body = method === 'POST' && url.pathname.endsWith('/create') ? await json(request) : {};
        const status = await this.instead.get(call)?.();
        return status === undefined
          ? await this.answer(call, url.searchParams.get('name') ?? '', body)
          : [status, { message: 'not now' }];
      };
      void answer().then(([status, content]) =>
        response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(content)),
      );
    });
  }

  get socket(): string {
    return path.join(this.folder, 'engine.sock');
  }

  async listen(): Promise<void> {
    this.server.listen(this.socket);
    await once(this.server, 'listening');
  }

  close(): void {
    [this.server, ...this.relays].forEach((server) => server.close());
    this.server.closeAllConnections();
  }

  private async answer(call: string, created: string, body: unknown): Promise<[number, unknown]> {
    const [, action = '', name = '', more = ''] =
      /^(\w+) \/containers\/([^/]+)\/?(.*)$/.exec(call)?.map((part, index) => (index === 0 ? '' : part)) ??
      [];
    if (call === 'POST /containers/create') {
      const { HostConfig, User } = body as { HostConfig: { NetworkMode: string }; User: string };
      this.containers.set(created, { network: HostConfig.NetworkMode, user: User, isRunning: false });
      return [201, { Id: created }];
    }
    if (call === 'GET /containers/json') {
      return [200, [{ Id: 'service', Labels: {} }]];
    }
    if (name === 'service') {
      return [200, { Mounts: this.mounts }];
    }
    if (name !== '') {
      return await this.ofContainer(name, `${action} ${more}`);
    }
    return call.startsWith('DELETE') ? [204, null] : [200, this.facts(call)];
  }

  private async ofContainer(name: string, action: string): Promise<[number, unknown]> {
    const container = this.containers.get(name);
    if (container === undefined) {
      return [404, { message: 'no such container' }];
    }
    switch (action) {
      case 'POST start':
        container.isRunning = true;
        if (name.endsWith('-relay')) {
          await this.relay(name);
        }
        return [204, null];
      case 'POST stop':
        container.isRunning = false;
        return [204, null];
      case 'DELETE ':
        this.containers.delete(name);
        return [204, null];
      default: {
        const State = { Status: container.isRunning ? 'running' : 'exited', Running: container.isRunning };
        return [
          200,
          { Id: name, Config: { Labels: LABELS }, State, HostConfig: { NetworkMode: container.network } },
        ];
      }
    }
  }

  /** Listens where the relay would. */
  private async relay(name: string): Promise<void> {
    const id = /^slipway-(.*)-relay$/.exec(name)?.[1] ?? '';
    const server = createSocketServer();
    this.relays.push(server as Server);
    server.listen(path.join(this.folder, 'sockets', id, '8000.sock'));
    await once(server, 'listening');
  }

  private facts(call: string): object {
    switch (call.split('/', 2)[1]) {
      case 'images':
        return { Id: 'sha256:1', Config: { Labels: {}, Env: [] } };
      case 'version':
        return { Version: '28.0.0', ApiVersion: '1.48' };
      case 'info':
        return { NCPU: 4, SecurityOptions: this.isRootless ? ['name=rootless'] : [] };
      default:
        return { Labels: LABELS };
    }
  }
}

describe('DockerSandboxBackend', () => {
  let folder: string;
  let engine: FakeEngine;
  let backend: DockerSandboxBackend;

  const backendOf = (network: string | null): DockerSandboxBackend =>
    new DockerSandboxBackend({
      dockerHost: `unix://${engine.socket}`,
      instanceId: 'test',
      listenAddress: null,
      defaultImage: IMAGE,
      network,
      subnets: '10.213.0.0/16',
      socketFolder: path.join(folder, 'sockets'),
      pidsLimit: 512,
      cpu: 1,
      memoryMb: 512,
      minFreeBytes: 0,
      sandboxBytes: 0,
      environment: {},
      graceSeconds: 1,
    });

  beforeEach(async () => {
    folder = await realpath(await mkdtemp(path.join(tmpdir(), 'engine-')));
    engine = new FakeEngine(folder);
    await engine.listen();
    backend = backendOf(null);
  });

  afterEach(async () => {
    jest.restoreAllMocks();
    engine.close();
    await rm(folder, { recursive: true });
  });

  const launch = sandboxLaunch({
    program: { kind: 'image', image: IMAGE, args: [] },
    egress: { port: 3180, credential: 'a.secret', authority: null, isOnlyWay: true },
  });
  const name = `slipway-${launch.id}`;

  it('makes a container anew that an interrupted start has left running in a network, if rules have come since', async () => {
    engine.containers.set(name, { network: 'slipway-test', user: '', isRunning: true });
    await backend.start(launch, signal);
    expect(engine.containers.get(name)).toMatchObject({ network: 'none', isRunning: true });
    expect(engine.containers.get(`${name}-relay`)).toMatchObject({
      network: `container:${name}`,
      isRunning: true,
    });
  });

  it('leaves a container that an interrupted start has made with the rules', async () => {
    engine.containers.set(name, { network: 'none', user: '', isRunning: true });
    await backend.start(launch, signal);
    expect(engine.calls).not.toContain(`POST /containers/${name}/stop`);
  });

  it('leaves no relay beside a container that does not start', async () => {
    const later = Promise.withResolvers<number>();
    engine.instead.set(`POST /containers/${name}/start`, () => Promise.resolve(400));
    engine.instead.set(`GET /containers/${name}-relay/json`, () => later.promise);
    const over: string[] = [];
    const start = backend.start(launch, signal).catch(() => over.push('failed'));
    await until(() => engine.calls.includes(`GET /containers/${name}-relay/json`));
    await until(() => engine.calls.includes(`POST /containers/${name}/start`));
    // The engine has answered the start by then.
    await backend.inspect('another');
    expect(over).toEqual([]);
    later.resolve(404);
    await start;
    expect(over).toEqual(['failed']);
    await backend.remove(launch.id);
    expect([...engine.containers.keys()]).toEqual([]);
  });

  it.each<[string, string | null, boolean, string]>([
    ['beside an engine', null, false, 'service'],
    ['beside an engine without root, whose root it is', null, true, '0:0'],
    ['in a container', 'services', false, 'service'],
    [
      'in a container of an engine without root, where users are the same in all',
      'services',
      true,
      'service',
    ],
  ])(
    'has a relay as the user that owns its folder, for a service %s',
    async (_where, network, isRootless, user) => {
      Object.assign(engine, { isRootless, mounts: [{ Source: folder, Destination: folder }] });
      jest.spyOn(process, 'getuid').mockReturnValue(1_000);
      jest.spyOn(process, 'getgid').mockReturnValue(1_000);
      await backendOf(network).start(launch, signal);
      expect(engine.containers.get(`${name}-relay`)?.user).toBe(user === 'service' ? '1000:1000' : user);
    },
  );
});
