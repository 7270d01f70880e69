import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { type SandboxBackend, SandboxBackendError } from '../sandbox-backend.js';
import { startedSandbox } from '../sandbox-backend.harness.js';
import { identifyProcess } from './sandbox-program.js';
import type { SandboxClient } from '../../../../test/support/sandbox-client.js';
import { TEST_CERTIFICATE } from '../../../../test/support/tls-certificate.js';
import { until } from '../../../../test/support/until.js';
import { describeNetwork, type ProcessHarness, processHarness } from './process.sandbox-backend.harness.js';

const SIGNAL = new AbortController().signal;
/** Options of sockets for which Linux looks up no route: SO_BINDTODEVICE, SO_DONTROUTE (socket(7)). */
const OPTIONS = ['25=tap0', '5=1'];
/** Connects with an option, and says so. */
const CONNECT = `
  my ($option, $host, $port) = @ARGV;
  socket(my $s, PF_INET, SOCK_STREAM, 0) or die;
  my ($name, $value) = split(/=/, $option);
  setsockopt($s, SOL_SOCKET, $name, $value =~ /^\\d+$/ ? pack("i", $value) : "$value\\0") or die if defined $value;
  print "connected\\n" if connect($s, sockaddr_in($port, inet_aton($host)));
`;
/** Others may make no network namespaces outside of a user namespace. */
const describeAsRoot = process.getuid?.() === 0 ? describe : describe.skip;

describeNetwork('the network of a process sandbox', () => {
  let harness: ProcessHarness;
  let closed: Server;
  let opened: Server;

  beforeAll(async () => {
    [closed, opened] = await Promise.all([serve('0.0.0.0'), serve('127.0.0.1')]);
    harness = await processHarness('bwrap', {
      network: { mode: 'isolated', allow: [`localhost:${portOf(opened)}`] },
    });
  });

  afterEach(() => harness.clear());

  afterAll(async () => {
    closed.close();
    opened.close();
    await harness.close();
  });

  const started = async (
    launch = harness.launch(),
    backend: SandboxBackend = harness.backend,
  ): Promise<SandboxClient> => await startedSandbox({ backend }, launch);

  it('leads to no service of this machine and no private address, but for a port that the operator opened', async () => {
    const client = await started();
    const machine = ['127.0.0.1', ...ownAddresses(), '10.0.2.2', '10.0.2.3'];
    const targets = [
      ...machine.map((host) => `${host}/${portOf(closed)}`),
      '169.254.169.254/80',
      '10.0.0.1/80',
      '172.16.0.1/80',
      '192.168.0.1/80',
    ];
    expect(await openOnes(client, targets)).toEqual([]);
    expect(await openOnes(client, [`127.0.0.1/${portOf(opened)}`])).toHaveLength(1);
  });

  it('leads to a port of an address of this machine that the operator opened, and to no other one', async () => {
    const addresses = ownAddresses();
    const backend = await harness.reopen({
      network: { mode: 'isolated', allow: addresses.map((address) => `${address}:${portOf(closed)}`) },
    });
    const other = await serve('0.0.0.0');
    const client = await started(harness.launch(), backend);
    const targets = (server: Server) => addresses.map((address) => `${address}/${portOf(server)}`);
    const found = await openOnes(client, [...targets(closed), ...targets(other)]);
    expect(found.toSorted()).toEqual(targets(closed).toSorted());
    other.close();
  });

  it('leads to whole ranges that the operator opened, also those that are closed otherwise', async () => {
    const addresses = ownAddresses();
    const allow = ['10.0.0.0/8', '192.168.0.0/16', ...addresses.map((address) => `${address}/32`)];
    const backend = await harness.reopen({ network: { mode: 'isolated', allow } });
    const client = await started(harness.launch(), backend);
    const targets = addresses.map((address) => `${address}/${portOf(closed)}`);
    expect((await openOnes(client, targets)).toSorted()).toEqual(targets.toSorted());
  });

  it('does not lead to the operator’s own proxy where rules say what it may reach', async () => {
    const backend = await harness.reopen({
      environment: { ...harness.options.environment, HTTPS_PROXY: `http://127.0.0.1:${portOf(opened)}` },
    });
    const port = 1;
    const egress = { port, credential: 'x', authority: TEST_CERTIFICATE, isOnlyWay: true };
    const client = await started(harness.launch({ egress }), backend);
    const targets = [`127.0.0.1/${portOf(opened)}`, `10.0.2.2/${portOf(opened)}`];
    expect(await openOnes(client, targets)).toEqual([]);
  });

  it('has a way out and its own name servers, by a connector that cannot take much of the machine', async () => {
    const launch = harness.launch();
    const { stdout } = await (await started(launch)).run('cat /proc/net/route /etc/resolv.conf');
    expect(stdout).toMatch(/^tap0\t00000000\t0202000A\t/m);
    expect(stdout).toMatch(/^nameserver 10\.0\.2\.3$/m);
    const file = path.join(harness.options.folder, launch.id, 'network.json');
    const pid = jsonNumber(JSON.parse(await readFile(file, 'utf8')), 'pid');
    expect(await readFile(`/proc/${pid}/limits`, 'utf8')).toMatch(/^Max open files +1024 +1024 /m);
    expect(await readFile(`/proc/${pid}/oom_score_adj`, 'utf8')).toBe('500\n');
  });

  describeAsRoot('of a service that is root', () => {
    it('leaves network namespaces of the machine alone', async () => {
      const name = `slipway-test-${process.pid}`;
      const ip = (...args: string[]) => spawnSync('ip', args, { encoding: 'utf8' });
      expect(ip('netns', 'add', name)).toMatchObject({ status: 0 });
      try {
        await started();
        expect(ip('netns', 'exec', name, 'true')).toMatchObject({ status: 0, stderr: '' });
      } finally {
        ip('netns', 'delete', name);
      }
    });

    it('is found to work also when the probe sees its interface before slirp4netns says that it is done', async () => {
      const slow = await slowSlirp4netns(path.dirname(harness.options.folder));
      const { environment } = harness.options;
      const network = { mode: 'isolated', allow: [] } as const;
      await expect(
        harness.reopen({ network, environment: { ...environment, PATH: `${slow}:${environment['PATH']}` } }),
      ).resolves.toBeDefined();
    });
  });

  it('leads no further for sockets that name their device or send no further than the network', async () => {
    const client = await started();
    const attempts = [...OPTIONS, 'plain'].map(
      (option) => `timeout 5 perl -MSocket -e '${CONNECT}' ${option} 10.0.2.2 ${portOf(closed)}`,
    );
    const control = `timeout 5 perl -MSocket -e '${CONNECT}' plain 127.0.0.1 ${portOf(opened)}`;
    const { stdout } = await client.run(`${[...attempts, control].join('; ')}; echo tried`);
    expect(stdout).toBe('connected\ntried\n');
  });

  it('shows a tool no socket of this machine, and lets it change no rule', async () => {
    const client = await started();
    const { stdout } = await client.run(
      'cat /proc/net/tcp; ip xfrm policy flush; unshare -r ip xfrm policy flush; unshare -rn true; ls /sys',
    );
    expect(stdout).not.toContain(portOf(closed).toString(16).toUpperCase());
    expect(await openOnes(client, ['10.0.0.1/80'])).toEqual([]);
  });

  it('is connected again when the process that connects it dies', async () => {
    const launch = harness.launch();
    const client = await started(launch);
    const connector = async () => {
      const file = path.join(harness.options.folder, launch.id, 'network.json');
      return jsonNumber(JSON.parse(await readFile(file, 'utf8')), 'pid') ?? 0;
    };
    const target = `127.0.0.1/${portOf(opened)}`;
    expect(await openOnes(client, [target])).toEqual([target]);
    const first = await connector();
    process.kill(first, 'SIGKILL');
    await until(async () => {
      await harness.backend.list();
      return (await connector()) !== first;
    });
    await until(async () => (await openOnes(client, [target])).length === 1);
    expect(await openOnes(client, [target, `10.0.2.2/${portOf(closed)}`])).toEqual([target]);
  });

  it.each([
    ['ends unconnected', true],
    ['lives on unconnected', false],
  ])(
    'is connected before a start has ended, also when what a killed service started for it %s',
    async (_what, ends) => {
      const launch = harness.launch();
      const client = await started(launch);
      const target = `127.0.0.1/${portOf(opened)}`;
      expect(await openOnes(client, [target])).toEqual([target]);
      const file = path.join(harness.options.folder, launch.id, 'network.json');
      const record: unknown = JSON.parse(await readFile(file, 'utf8'));
      const unready = spawn('sleep', ['1000']);
      const ended = once(unready, 'exit');
      const identity = { ...identifyProcess(unready.pid ?? 0), run: jsonText(record, 'run') };
      await writeFile(file, JSON.stringify(identity));
      process.kill(jsonNumber(record, 'pid') ?? 0, 'SIGKILL');
      await until(async () => (await openOnes(client, [target])).length === 0);

      const start = (await harness.reopen()).start(launch, SIGNAL);
      const always = isAlwaysThere(file, start);
      const first = await Promise.race([
        start.then(() => 'started'),
        client.run('true').then(() => 'waiting'),
      ]);
      if (ends) {
        unready.kill();
      }
      await start;

      expect(first).toBe('waiting');
      expect(await ended).toEqual([null, ends ? 'SIGTERM' : 'SIGKILL']);
      expect(await openOnes(client, [target])).toEqual([target]);
      // Without a record, it would not be connected again if the service were killed in between.
      expect(await always).toBe(true);
    },
  );

  it('is refused where it is required and cannot be', async () => {
    const network = { mode: 'isolated', allow: [] } as const;
    await expect(harness.reopen({ network, listenAddress: '127.0.0.1' })).rejects.toThrow(
      SandboxBackendError,
    );
    await expect(harness.reopen({ network, isolation: 'none' })).rejects.toThrow(/SANDBOX_NETWORK=isolated/);
  });

  it('lets sandboxes have an egress proxy, and where it is shared it says why they have none', async () => {
    expect(harness.backend.proxyObstacle()).toBeNull();
    const network = { mode: 'auto', allow: [] } as const;
    for (const [changes, reason] of [
      [{ network, listenAddress: '127.0.0.1' }, 'SANDBOX_ADDRESS'],
      [{ network, isolation: 'none' }, 'SANDBOX_ISOLATION=none'],
      [{ network: { ...network, mode: 'shared' } }, 'SANDBOX_NETWORK=shared'],
    ] as const) {
      expect((await harness.reopen(changes)).proxyObstacle()).toMatch(
        new RegExp(`bubblewrap, slirp4netns and iproute2.*${reason}`),
      );
    }
  });
});

/** Whether a file was there whenever one looked, until the work was done. */
async function isAlwaysThere(file: string, work: Promise<unknown>): Promise<boolean> {
  const done = work.then(() => true);
  let wasThere = true;
  while (!(await Promise.race([done, nextTurn(false)]))) {
    wasThere &&= existsSync(file);
  }
  return wasThere;
}

/** A folder with a stand-in for slirp4netns that makes the interface and never says that it is done. */
async function slowSlirp4netns(below: string): Promise<string> {
  const folder = await mkdtemp(path.join(below, 'slow-'));
  const script = `#!/bin/sh
while [ $# -gt 2 ]; do shift; done
nsenter --net="$1" ip tuntap add dev "$2" mode tap
exec sleep 60
`;
  await writeFile(path.join(folder, 'slirp4netns'), script, { mode: 0o755 });
  return folder;
}

/** This machine's IPv4 addresses besides loopback. */
function ownAddresses(): string[] {
  const found = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return found.flatMap(({ family, internal, address }) => (family === 'IPv4' && !internal ? [address] : []));
}

async function serve(host: string): Promise<Server> {
  const server = createServer((_, response) => response.end('here'));
  server.listen(0, host);
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** Those of the targets (`host/port`) that a tool gets a response from. */
async function openOnes(client: SandboxClient, targets: readonly string[]): Promise<string[]> {
  const script = `exec 3<>/dev/tcp/$0; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3 | grep -q here && echo "$0"`;
  const checks = targets.map((target) => `timeout 5 bash -c '${script}' ${target} 2>/dev/null`);
  const { stdout } = await client.run(`${checks.join(' & ')} & wait; echo checked`);
  const lines = stdout.split('\n').filter(Boolean);
  if (lines.pop() !== 'checked') {
    throw new Error(stdout);
  }
  return lines;
}
