import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { hostname, release, tmpdir } from 'node:os';
import path from 'node:path';
import Docker from 'dockerode';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import type { EgressAccess, ProgramLaunch } from '../sandbox-backend.js';
import { newProxySocket, SandboxRelays } from './sandbox-relays.js';

describe('newProxySocket', () => {
  let folder: string;
  let servers: Server[];

  beforeEach(async () => {
    folder = path.join(await mkdtemp(path.join(tmpdir(), 'proxies-')), 'sockets');
    servers = [];
  });

  afterEach(async () => {
    servers.forEach((server) => server.close());
    await rm(path.dirname(folder), { recursive: true });
  });

  async function listening(socket: string): Promise<Server> {
    const server = createServer();
    servers.push(server);
    server.listen(socket);
    await once(server, 'listening');
    return server;
  }

  it('is in a folder that other users of the machine do not get into', async () => {
    const socket = await newProxySocket(folder);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect(path.dirname(socket)).toBe(path.join(folder, 'proxies'));
  });

  it('leaves sockets of other proxies as they are, and removes those of proxies that were killed', async () => {
    const [alive, killed] = [await newProxySocket(folder), await newProxySocket(folder)];
    await listening(alive);
    const server = await listening(`${killed}.new`);
    await rename(`${killed}.new`, killed);
    server.close();
    await once(server, 'close');
    expect(await readdir(path.dirname(alive))).toHaveLength(2);
    const next = await newProxySocket(folder);
    expect(await readdir(path.dirname(alive))).toEqual([path.basename(alive)]);
    expect([alive, killed]).not.toContain(next);
  });
});

describe('what keeps containers from having a relay', () => {
  const HERE = {
    version: '28.0.0',
    processors: 4,
    knowsHostGateway: true,
    isRootless: false,
    isRemapped: false,
    machine: { hostname: hostname(), kernel: release() },
    defaultRuntime: 'runc',
    rootDir: null,
  };
  const IMAGE = { id: 'sha256:1', hasAgentServer: true, hasRelay: true, variables: [] };

  let place: string;

  beforeAll(async () => {
    place = await mkdtemp(path.join(tmpdir(), 'relays-'));
  });

  afterAll(async () => {
    await rm(place, { recursive: true });
  });

  const found = async (
    engine: Partial<typeof HERE> = {},
    image: Partial<typeof IMAGE> | null = {},
    folder = path.join(place, 'sockets'),
    defaultImage = 'slipway-agent-server',
  ): Promise<SandboxRelays> => {
    const options = { instanceId: 'test', defaultImage, network: null, socketFolder: folder };
    const relays = new SandboxRelays(new Docker({ socketPath: '/none' }), options);
    await relays.look({ ...HERE, ...engine }, image && { ...IMAGE, ...image });
    return relays;
  };

  it('is nothing where the engine is on the machine of the service, and the image of its version or yet to be pulled', async () => {
    expect((await found()).obstacle(null)).toBeNull();
    const pulled = 'registry.example.com/agent-server:1';
    const engine = { defaultRuntime: '/usr/bin/crun' };
    expect((await found(engine, null, undefined, pulled)).obstacle(null)).toBeNull();
  });

  it.each<[RegExp, Parameters<typeof found>]>([
    [/older version.*build it anew/, [{}, { hasRelay: false }]],
    [/slipway-agent-server, .* is missing: npm run image:agent-server/, [{}, null]],
    [/not on the machine/, [{ machine: { hostname: 'docker-desktop', kernel: release() } }]],
    [/not on the machine/, [{ machine: { hostname: hostname(), kernel: '6.6.0-linuxkit' } }]],
    [/userns-remap/, [{ isRemapped: true }]],
    [/shorter path/, [{}, {}, `/${'long'.repeat(25)}`]],
    [/cannot write to its DATA_DIR/, [{}, {}, '/dev/null/sockets']],
    [/the runtime runsc/, [{ defaultRuntime: 'runsc' }]],
  ])('is %s', async (expected, given) => {
    expect((await found(...given)).obstacle(null)).toMatch(expected);
  });

  it('is the runtime of a single sandbox, too', async () => {
    const relays = await found({ defaultRuntime: 'runsc' });
    expect([relays.obstacle('kata'), relays.obstacle('runc')]).toEqual([
      expect.stringContaining('kata'),
      null,
    ]);
  });

  it.each([null, 'kata', 'runc', '/usr/bin/runc'])(
    'is known by the same runtimes before a sandbox is started: %s',
    async (runtime) => {
      const relays = await found({ defaultRuntime: 'runsc' });
      const launch = { id: 's', network: null, runtime } as ProgramLaunch;
      // This engine has no images to look for.
      const failure = await relays
        .require(launch, { isOnlyWay: true } as EgressAccess, new AbortController().signal)
        .then(() => '', errorMessage);
      expect(failure).toContain(relays.obstacle(runtime) ?? 'no Docker engine answers');
    },
  );
});
