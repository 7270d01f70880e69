import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { ListenOptions } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { EgressAccess, SandboxLaunch } from './sandbox-backend.js';
import { SandboxClient, sandboxAnswers } from '../../../test/support/sandbox-client.js';
import { sandboxFetch } from '../../../test/support/sandbox-fetch.js';
import { TEST_CERTIFICATE } from '../../../test/support/tls-certificate.js';
import { until } from '../../../test/support/until.js';
import { type SandboxBackendHarness, startedSandbox } from './sandbox-backend.harness.js';

/** What a backend adds to its harness where its sandboxes can leave by an egress proxy alone. */
export interface EgressPromises {
  /** Where a proxy beside the backend has to listen, so that sandboxes find it at `port`. */
  listen(port: number): Promise<ListenOptions>;
  port: number;
  /** Names of interfaces beside the loopback that such a sandbox may have. */
  interfaces: readonly string[];
}

/** Connects by TCP past all variables, with options of sockets for which Linux looks up no route, and says so. */
const CONNECT = `
  use Socket;
  my ($option, $host, $port) = @ARGV;
  $SIG{ALRM} = sub { exit 1 }; alarm 5;
  socket(my $s, PF_INET, SOCK_STREAM, 0) or exit 1;
  my ($name, $value) = split(/=/, $option);
  if (defined $value) { setsockopt($s, SOL_SOCKET, $name, $value =~ /^\\d+$/ ? pack("i", $value) : "$value\\0"); }
  connect($s, sockaddr_in($port, inet_aton($host))) and print "$option $host:$port\\n";
`;
/** Sends a query for a name to a server, and says what size the answer has. */
const ASK = `
  use Socket;
  my ($option, $server, $port) = @ARGV;
  $SIG{ALRM} = sub { exit 1 }; alarm 3;
  socket(my $s, PF_INET, SOCK_DGRAM, 0) or exit 1;
  my ($name, $value) = split(/=/, $option);
  if (defined $value) { setsockopt($s, SOL_SOCKET, $name, "$value\\0"); }
  my $query = pack("n6", 7, 256, 1, 0, 0, 0) . pack("C/a*", "stolen") . pack("C/a*", "example") . pack("C n n", 0, 1, 1);
  send($s, $query, 0, sockaddr_in($port, inet_aton($server)));
  recv($s, my $answer, 512, 0); print "answered by $server\\n" if length $answer;
`;
/** Answers queries in the sandbox, so that it is seen that these can be answered. */
const ECHO = `
  use IO::Socket::INET;
  my $s = IO::Socket::INET->new(Proto => "udp", LocalAddr => "127.0.0.1", LocalPort => 5353) or die;
  while ($s->recv(my $query, 512)) { $s->send($query); }
`;
/** SO_BINDTODEVICE, SO_DONTROUTE (socket(7)). */
const OPTIONS = ['plain', '25=eth0', '25=tap0', '5=1'];

/** The contract of a backend whose sandboxes leave by an egress proxy: a stand-in says who asked it for what. */
export function describeSandboxEgress(
  name: string,
  makeHarness: () => Promise<SandboxBackendHarness & EgressPromises>,
): void {
  describe(`sandbox backend: ${name}, with an egress proxy`, () => {
    let harness: SandboxBackendHarness & EgressPromises;
    let proxy: Server;
    let machine: Server;
    let nameServer: Socket;
    const callers: string[] = [];
    const queries: string[] = [];

    beforeAll(async () => {
      harness = await makeHarness();
      proxy = createServer(({ url, headers }, response) => {
        const [, encoded = ''] = (headers['proxy-authorization'] ?? '').split(' ');
        // Not in the answer, where the agent server would mask it.
        callers.push(Buffer.from(encoded, 'base64').toString());
        response.end(`the proxy, asked for ${url}`);
      });
      proxy.listen(await harness.listen(harness.port));
      machine = createServer((_, response) => response.end('the machine'));
      machine.listen(0, '0.0.0.0');
      nameServer = createSocket('udp4', (query, { port, address }) => {
        queries.push(query.toString('latin1'));
        nameServer.send(query, port, address);
      });
      nameServer.bind(0, '0.0.0.0');
      await Promise.all([once(machine, 'listening'), once(nameServer, 'listening')]);
    });

    afterEach(async () => {
      const { backend } = harness;
      await Promise.all((await backend.list()).map(async ({ id }) => await backend.remove(id)));
      [callers, queries].forEach((list) => list.splice(0));
    });

    afterAll(async () => {
      [proxy, machine].forEach((server) => server.close().closeAllConnections());
      nameServer.close();
      await harness.close();
    });

    const launchWith = (isOnlyWay: boolean, changes: Partial<SandboxLaunch> = {}): SandboxLaunch => {
      const { port } = harness;
      const egress: EgressAccess = { port, credential: 'secret', authority: TEST_CERTIFICATE, isOnlyWay };
      return harness.launch({ egress, ...changes });
    };

    /** Who asked the proxy when a program in the sandbox asked for a page. */
    const caller = async (client: SandboxClient): Promise<string | undefined> => {
      const { stdout } = await client.run('curl -sS -m 20 http://anywhere.example/path');
      expect(stdout).toBe('the proxy, asked for http://anywhere.example/path');
      return callers.pop();
    };

    /** Those of the servers (`host:port`) that a program gets to, by any option of its sockets. */
    async function reached(client: SandboxClient, script: string, servers: string[]): Promise<string[]> {
      const tries = servers.flatMap((server) =>
        OPTIONS.map((option) => `perl -e '${script}' ${option} ${server.replace(/:(\d+)$/, ' $1')} &`),
      );
      const { stdout } = await client.run(`${tries.join(' ')} wait; echo tried`);
      const lines = stdout.split('\n').filter(Boolean);
      expect(lines.pop()).toBe('tried');
      return lines;
    }

    it('leads a sandbox to the proxy, under its own credential, also after a pause and a restart of the service', async () => {
      const launch = launchWith(true);
      const client = await startedSandbox(harness, launch);
      expect(await caller(client)).toBe(`${launch.id}:secret`);
      await harness.backend.pause(launch.id);
      await harness.backend.resume(launch, new AbortController().signal);
      const reopened = await harness.reopen();
      expect(await caller(await sandboxAnswers(reopened, launch))).toBe(`${launch.id}:secret`);
    });

    it.each([
      ['alone', true],
      ['beside an open network', false],
    ])('is there for one that was kept warm, before it has its key: %s', async (_what, isOnlyWay) => {
      const { backend } = harness;
      const { sessionKey, ...warm } = launchWith(isOnlyWay);
      const { signal } = new AbortController();
      await backend.warm?.start(warm, signal);
      await until(async () => {
        const { address } = await backend.inspect(warm.id);
        return address !== null && (await new SandboxClient(address, '').liveness()) === 'unassigned';
      });
      const { address } = await backend.inspect(warm.id);
      const launch = { ...warm, sessionKey };
      await backend.start(launch, signal);
      const client = await sandboxAnswers(backend, launch);
      expect(client.address).toBe(address);
      expect(callers).toEqual([]);
      expect(await caller(client)).toBe(`${launch.id}:secret`);
    });

    it('leads to nothing else, whatever programs make of their variables and sockets', async () => {
      const other = launchWith(true);
      await startedSandbox(harness, other);
      const client = await startedSandbox(harness, launchWith(true));
      const port = portOf(machine);
      const addresses = [...machineAddresses(), '169.254.169.254', '10.0.0.1', '198.18.0.1', '1.1.1.1'];
      const servers = addresses.flatMap((address) => [`${address}:${port}`, `${address}:53`]);
      const own = `127.0.0.1:${harness.port}`;
      const found = await reached(client, CONNECT, [...servers, '127.0.0.1:53', own]);
      expect(found).toContain(`plain ${own}`);
      expect(found.filter((line) => !line.endsWith(` ${own}`))).toEqual([]);
      const v6 = `for host in ::1 2606:4700::1111 fe80::1%eth0; do curl -sg -m 5 --noproxy '*' "http://[$host]:${port}/" && echo open; done; echo tried`;
      expect((await client.run(v6)).stdout).toBe('tried\n');
      const { stdout } = await client.run('tail -n +3 /proc/net/dev | cut -d: -f1');
      expect(stdout.trim().split(/\s+/).toSorted()).toEqual(['lo', ...harness.interfaces].toSorted());
    });

    it('carries no name out by a name server', async () => {
      const client = await startedSandbox(harness, launchWith(true));
      const { stdout } = await client.run("sed -n 's/^nameserver //p' /etc/resolv.conf; echo 127.0.0.11");
      const port = nameServer.address().port;
      const servers = [
        ...stdout
          .trim()
          .split('\n')
          .filter((server) => /^[\d.]+$/.test(server))
          .map((server) => `${server}:53`),
        ...machineAddresses().flatMap((address) => [`${address}:53`, `${address}:${port}`]),
      ];
      client.run(`perl -e '${ECHO}'`).catch(() => undefined);
      await until(async () => (await reached(client, ASK, ['127.0.0.1:5353'])).length > 0);
      expect(await reached(client, ASK, servers)).toEqual([]);
      expect((await client.run('getent hosts stolen.example; echo $?')).stdout).toBe('2\n');
      expect(queries).toEqual([]);
    });

    it('leads programs of the sandbox to the service, at their own ports', async () => {
      const launch = launchWith(true, { ports: { WORKER_1: 8011 } });
      const client = await startedSandbox(harness, launch);
      const program =
        "require('node:http').createServer((_, answer) => answer.end('page')).listen(8011, process.env.LISTEN_HOST)";
      client.run(`node -e "${program}"`).catch(() => undefined);
      const page = async (): Promise<string> => {
        const { ports } = await harness.backend.inspect(launch.id);
        return await (await sandboxFetch(ports['WORKER_1'] ?? '', '/')).text();
      };
      await until(async () => (await page().catch(() => '')) !== '');
      expect(await page()).toBe('page');
    });

    it('leaves the network as it is where it is there for credentials alone', async () => {
      const launch = launchWith(false);
      const client = await startedSandbox(harness, launch);
      expect(await caller(client)).toBe(`${launch.id}:secret`);
      const { stdout } = await client.run('tail -n +3 /proc/net/dev | cut -d: -f1');
      expect(stdout.trim().split(/\s+/).length).toBeGreaterThan(1);
    });
  });
}

/** This machine's addresses, those of bridges included that are there while sandboxes run. */
function machineAddresses(): string[] {
  const found = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return found.flatMap(({ family, address, internal }) => (family === 'IPv4' && !internal ? [address] : []));
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
