import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { isIP, type ListenOptions } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { addressesOf, type ResolveName } from '@slipway/common/http/name-lookup.js';
import { EgressProxy } from './egress-proxy.js';
import { logLine } from './report-queue.js';
import { HttpServiceConnection } from './service-connection.js';

/** How long a stop waits for what is under way. */
const GRACE_MS = 10_000;
const LISTEN = /^(?:unix:(\/.+)|(?:\[([0-9a-f:.]+)\]|([^:[\]/]+)):(\d{1,5}))$/i;

interface EgressProxyConfiguration {
  listen: ListenOptions[];
  /** Addresses of names that the resolver does not know. */
  hosts: ReadonlyMap<string, string>;
  service: URL;
  key: string;
  graceMs: number;
  /** The key came by standard input, whose end stops the proxy: so none outlives a parent that was killed. */
  isWatched: boolean;
}

/**
 * `EGRESS_PROXY_LISTEN` (`127.0.0.1:3128`, `[::]:3128`, `unix:/path`, several by commas), `EGRESS_PROXY_SERVICE_URL`,
 * `EGRESS_PROXY_KEY_FILE` (`-`, the default: the first line of standard input), `EGRESS_PROXY_GRACE_SECONDS`,
 * `EGRESS_PROXY_HOSTS` (`name=address`, several by commas: names that the resolver does not know).
 *
 * @throws Error that says which variable is wrong
 */
export async function readConfiguration(
  environment: Readonly<NodeJS.ProcessEnv>,
  input: Readable,
): Promise<EgressProxyConfiguration> {
  const listen = (environment['EGRESS_PROXY_LISTEN'] ?? '127.0.0.1:3128')
    .split(',')
    .map((text) => parseListen(text.trim()));
  const service = URL.parse(environment['EGRESS_PROXY_SERVICE_URL'] ?? '');
  if (service === null || !['http:', 'https:'].includes(service.protocol)) {
    throw new Error(
      'EGRESS_PROXY_SERVICE_URL has to be the address of the service, such as http://127.0.0.1:3000',
    );
  }
  const seconds = Number(environment['EGRESS_PROXY_GRACE_SECONDS'] ?? GRACE_MS / 1000);
  if (!Number.isFinite(seconds) || seconds < 0) {
    throw new Error('EGRESS_PROXY_GRACE_SECONDS has to be a number of seconds');
  }
  const file = environment['EGRESS_PROXY_KEY_FILE'] ?? '-';
  const given = file === '-' ? await firstLine(input) : await readFile(file, 'utf8');
  // A second key is one that the service still takes, since other proxies show it.
  const key = given.replace(/,.*/s, '').trim();
  if (key === '') {
    throw new Error('EGRESS_PROXY_KEY_FILE has no key');
  }
  const hosts = parseHosts(environment['EGRESS_PROXY_HOSTS'] ?? '');
  return { listen, hosts, service, key, graceMs: seconds * 1000, isWatched: file === '-' };
}

function parseHosts(text: string): ReadonlyMap<string, string> {
  const entries = text
    .split(',')
    .filter(Boolean)
    .map((entry) => entry.split('='));
  return new Map(
    entries.map(([name = '', address = '', ...more]) => {
      if (name === '' || isIP(address) === 0 || more.length > 0) {
        throw new Error('EGRESS_PROXY_HOSTS has to be name=address, several by commas');
      }
      return [name.toLowerCase(), address];
    }),
  );
}

function parseListen(text: string): ListenOptions {
  const [, socket, bracketed, name, port] = LISTEN.exec(text) ?? [];
  if (socket !== undefined) {
    // Its folder says who reaches it: sandboxes are other users than the service.
    return { path: socket, readableAll: true, writableAll: true };
  }
  const host = bracketed ?? name;
  if (host === undefined || Number(port) > 65_535) {
    throw new Error(
      `EGRESS_PROXY_LISTEN has "${text}", which is none of host:port, [address]:port and unix:/path`,
    );
  }
  // Of several replicas on one machine, each has a proxy at the same port.
  return { host, port: Number(port), reusePort: true };
}

async function firstLine(input: Readable): Promise<string> {
  const lines = createInterface({ input });
  for await (const line of lines) {
    return line;
  }
  return '';
}

/** Runs a proxy until it is told to stop. The line `egress proxy started` says where it listens. */
export async function runEgressProxy(
  environment: Readonly<NodeJS.ProcessEnv>,
  input: Readable,
): Promise<void> {
  // The reader of the log may go first.
  process.stderr.on('error', () => undefined);
  const terminated = once(process, 'SIGTERM');
  const interrupted = Promise.withResolvers<void>();
  process.on('SIGINT', interrupted.resolve);
  const { listen, hosts, service, key, graceMs, isWatched } = await readConfiguration(environment, input);
  // Ctrl-C reaches the parent too, whose requests go on through the proxy until it has stopped.
  const stopping = Promise.race([
    terminated,
    isWatched ? once(input.resume(), 'close') : interrupted.promise,
  ]);
  const resolve: ResolveName = async (name, isOfOperator) =>
    await addressesOf(hosts.get(name) ?? name, isOfOperator);
  const proxy = new EgressProxy({ service: new HttpServiceConnection(service, key), resolve });
  const addresses = [];
  for (const options of listen) {
    const address = await proxy.listen(options);
    addresses.push(
      typeof address === 'string' ? `unix:${address}` : { host: address.address, port: address.port },
    );
  }
  logLine('info', 'egress proxy started', { listen: addresses });
  await stopping;
  logLine('info', 'egress proxy stopping');
  await proxy.close(graceMs);
  logLine('info', 'egress proxy stopped');
}
