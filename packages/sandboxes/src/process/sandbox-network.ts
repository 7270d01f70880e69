import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readlink, realpath, rm } from 'node:fs/promises';
import { addAbortSignal, Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { LookupAddress } from 'node:dns';
import ipaddr from 'ipaddr.js';
import { parseJson } from '@slipway/common/json-access.js';
import { sendSignal, isBare } from '@slipway/common/processes/end-processes.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { parseDestination } from '@slipway/common/http/address-rules.js';
import { withoutInherited } from '@slipway/common/processes/inherited-descriptors.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import {
  identifyProcess,
  isProgramAlive,
  parseStartedProcess,
  type ProcessIdentity,
} from './sandbox-program.js';
import { readIfExists, readLogTail, type SandboxPaths, writeWhole } from './sandbox-files.js';

export interface IsolatedNetwork {
  bwrap: string;
  slirp4netns: string;
  ip: string;
  unshare: string;
  setpriv: string;
  /** Set when the service is not root: the network then belongs to a user namespace. */
  joinsUserNamespace: boolean;
}

/** The machine's loopback as slirp4netns(1) maps it. */
export const HOST_LOOPBACK = '10.0.2.2';
const NAME_SERVER = '10.0.2.3';

/** https://www.iana.org/assignments/iana-ipv4-special-registry */
const NOT_PUBLIC = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
const OPEN_PRIORITY = 100;
const CLOSED_PRIORITY = 200;

export interface NetworkRules {
  /** Whether it has no name server. */
  isNameless?: true;
  closed: readonly string[];
  opened: readonly OpenedDestination[];
  /** TCP ports of the machine's loopback that it reaches at its own. */
  loopbackPorts: readonly number[];
}

interface OpenedDestination {
  range: string;
  /** A TCP port; null opens everything. */
  port: number | null;
}

/** Names are resolved now, and open nothing if that fails. @throws RangeError for an invalid entry */
export async function networkRules(
  allow: readonly string[],
  ownAddresses: readonly string[],
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<NetworkRules> {
  const opened = (await Promise.all(allow.map(async (entry) => await openedBy(entry, resolve)))).flat();
  const own = ownAddresses.filter((address) => ipaddr.IPv4.isValid(address) && !isLoopbackHost(address));
  return {
    closed: [...NOT_PUBLIC, ...own],
    opened: opened.filter(({ range }) => !isLoopbackRange(range)),
    loopbackPorts: [
      ...new Set(
        opened.flatMap(({ range, port }) => (isLoopbackRange(range) && port !== null ? [port] : [])),
      ),
    ],
  };
}

/**
 * Those of a sandbox that leaves by a proxy at a port of the machine's loopback: no name and no other address.
 * @param without ports that stay closed: the operator's own proxy passes everything on
 */
export function closedNetwork(
  { loopbackPorts }: NetworkRules,
  { proxyPort, without }: { proxyPort: number; without: readonly number[] },
): NetworkRules {
  const ports = [...new Set([...loopbackPorts.filter((port) => !without.includes(port)), proxyPort])];
  return { isNameless: true, closed: ['0.0.0.0/0'], opened: [], loopbackPorts: ports };
}

/**
 * Commands for `ip -batch` before the network is connected. IPsec policies (ip-xfrm(8)) also apply to
 * SO_BINDTODEVICE, SO_DONTROUTE and broadcasts, which skip routes; packet filters are on fewer machines.
 */
export function policyCommands({ isNameless, closed, opened, loopbackPorts }: NetworkRules): string {
  // The kernel takes each selector once, whatever its priority.
  const whole = new Set(opened.flatMap(({ range, port }) => (port === null ? [selectorOf(range)] : [])));
  const ranges = [...new Set(closed.map(selectorOf))].filter((range) => !whole.has(range));
  const exceptions = [
    ...(isNameless ? [] : ['tcp', 'udp']).map((protocol) => `${NAME_SERVER} proto ${protocol} dport 53`),
    ...loopbackPorts.map((port) => `${HOST_LOOPBACK} proto tcp dport ${port}`),
    ...opened.map(
      ({ range, port }) => `${selectorOf(range)}${port === null ? '' : ` proto tcp dport ${port}`}`,
    ),
  ];
  return [
    'link set lo up',
    ...[...new Set(exceptions)].map(
      (exception) => `xfrm policy add dst ${exception} dir out priority ${OPEN_PRIORITY}`,
    ),
    ...ranges.map((range) => `xfrm policy add dst ${range} dir out action block priority ${CLOSED_PRIORITY}`),
  ].join('\n');
}

function selectorOf(range: string): string {
  return range.replace(/\/32$/, '');
}

/** Keeps the machine's search domains and names the network's own server. */
export function resolverConfiguration(machine: string): string {
  const kept = machine.split('\n').filter((line) => /^\s*(search|domain|options)\s/.test(line));
  return [...kept, `nameserver ${NAME_SERVER}`, ''].join('\n');
}

async function openedBy(
  entry: string,
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<OpenedDestination[]> {
  const destination = parseDestination(entry);
  if (destination === null) {
    throw new RangeError(`${entry} is no destination`);
  }
  if (destination.kind === 'range') {
    const range = ipaddr.IPv4.networkAddressFromCIDR(destination.range).toString();
    return [{ range: `${range}/${destination.range.split('/')[1]}`, port: null }];
  }
  const { host, port } = destination;
  return (await addressesOf(host, resolve)).map((range) => ({ range, port }));
}

async function addressesOf(
  host: string,
  resolve: (hostname: string) => Promise<readonly LookupAddress[]>,
): Promise<string[]> {
  if (host === 'localhost') {
    return ['127.0.0.1'];
  }
  if (ipaddr.IPv4.isValidFourPartDecimal(host)) {
    return [host];
  }
  const found = await resolve(host).catch(() => []);
  return found.flatMap(({ address, family }) => (family === 4 ? [address] : []));
}

function isLoopbackRange(range: string): boolean {
  const [address = ''] = range.split('/');
  return isLoopbackHost(address);
}

const READY_TIMEOUT_MS = 10_000;
/** An earlier connector that is not done after this time is replaced; it takes milliseconds. */
const EARLIER_TIMEOUT_MS = 3_000;
/** Starts wait for other things that take longer, and each look takes processor time from them. */
const POLL_MS = 10;
const KILL_POLL_MS = 1;
/** The kernel ends what was killed within this time. */
const KILL_TIMEOUT_MS = 5_000;
/** The largest packets that slirp4netns takes; small ones cost a system call each. */
const MTU = 65_520;
export const NETWORK_INTERFACE = 'tap0';

/**
 * slirp4netns has a socket for each connection of the sandbox, so their number is bounded. It begins when it has a
 * record: one that a killed service left without any would be in the way of the next.
 */
const BEGIN =
  'ulimit -n 1024 2> /dev/null; echo 500 > /proc/self/oom_score_adj; read -r _ && exec "$@" < /dev/null';

interface NetworkRecord extends ProcessIdentity {
  run: string;
}

export interface NetworkConnection {
  /** @throws SandboxBackendError when the namespace cannot be connected */
  connected: Promise<void>;
}

interface AttachInput {
  paths: SandboxPaths;
  network: IsolatedNetwork;
  pid: number;
  run: string;
  marker: string;
  signal: AbortSignal;
}

/**
 * Has a network namespace connected by a slirp4netns that outlives the service, unless one does already. Resolves when
 * that has a record: a service killed before would leave the sandbox unconnected.
 * @throws SandboxBackendError when the namespace does not come up
 */
export async function attachNetwork(input: AttachInput): Promise<NetworkConnection> {
  const { paths, run } = input;
  const known = await readRecord(paths);
  if (known?.run === run) {
    if (await becomesConnected(known, input)) {
      return { connected: Promise.resolve() };
    }
    // The old record stays until the new one: without any, a service killed now would leave the sandbox unconnected.
    await endConnector(known);
    await interfaceRemoved(input);
  }
  await namespaceReady(input);
  const log = openSync(paths.networkLog, 'w', 0o600);
  const [name = '', value = ''] = input.marker.split(/=(.*)/s);
  const command = ['-c', BEGIN, 'sh', ...slirpCommand(input)];
  const child = spawn('/bin/sh', command, {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', [name]: value },
    cwd: '/',
    detached: true,
    stdio: withoutInherited(['pipe', log, log, 'pipe']),
  });
  closeSync(log);
  // A program that cannot be run has no pid, and its pipe closes at once.
  child.on('error', () => undefined);
  child.stdin?.on('error', () => undefined);
  child.unref();
  try {
    if (child.pid !== undefined) {
      await writeWhole(paths.network, { ...identifyProcess(child.pid), run });
      child.stdin?.end('\n');
    }
  } catch (error) {
    throw unconnected(child, error);
  }
  return { connected: untilConnected(child, input) };
}

async function untilConnected(child: ChildProcess, { paths, signal }: AttachInput): Promise<void> {
  try {
    if (!(await isReady(child.stdio[3], signal))) {
      throw new Error(firstComplaint(await readLogTail(paths.networkLog)));
    }
  } catch (error) {
    throw unconnected(child, error);
  }
}

/** slirp4netns warns of its own options, and says last that it failed. */
export function firstComplaint(log: string): string {
  return log.split('\n').find((line) => !/^(WARNING:|$)/.test(line)) ?? 'slirp4netns says nothing';
}

function unconnected(child: ChildProcess, cause: unknown): SandboxBackendError {
  child.kill('SIGKILL');
  return new SandboxBackendError(
    'The sandbox cannot be started: slirp4netns did not connect its network. SANDBOX_NETWORK=shared does without.',
    { cause },
  );
}

/** Whether the process that connected this start of the sandbox has died. */
export async function isNetworkLost(paths: SandboxPaths, run: string): Promise<boolean> {
  const record = await readRecord(paths);
  // If there is no record, another process of this host is about to connect it.
  return record?.run === run && !isProgramAlive(record);
}

/** Ends the process that connected the sandbox's start `run`, or any start if null. */
export async function detachNetwork(paths: SandboxPaths, run: string | null): Promise<void> {
  const record = await readRecord(paths);
  if (record !== null && (run === null || record.run === run)) {
    await endConnector(record);
    await rm(paths.network, { force: true });
  }
}

async function endConnector(record: NetworkRecord): Promise<void> {
  const deadline = performance.now() + KILL_TIMEOUT_MS;
  // A process without arguments has ended; the kernel removes its network interface some milliseconds later.
  while (isProgramAlive(record) && !isBare(record.pid) && performance.now() < deadline) {
    sendSignal(record.pid, 'SIGKILL');
    await delay(KILL_POLL_MS);
  }
}

/** An earlier connector may still need time; it goes on when its service is killed. */
async function becomesConnected(known: NetworkRecord, { pid, signal }: AttachInput): Promise<boolean> {
  const deadline = performance.now() + EARLIER_TIMEOUT_MS;
  while (isProgramAlive(known) && performance.now() < deadline) {
    // The route is the last thing that slirp4netns configures.
    const routes = await readIfExists(`/proc/${pid}/net/route`);
    if (routes.split('\n').some((line) => line.startsWith(`${NETWORK_INTERFACE}\t00000000\t`))) {
      return true;
    }
    await delay(POLL_MS, undefined, { signal });
  }
  return false;
}

/** The kernel removes the interface some milliseconds after the process that made it has ended. */
async function interfaceRemoved({ pid, signal }: AttachInput): Promise<void> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(READY_TIMEOUT_MS)]);
  while ((await readIfExists(`/proc/${pid}/net/dev`)).includes(`${NETWORK_INTERFACE}:`)) {
    await delay(POLL_MS, undefined, { signal: deadline });
  }
}

/** slirp4netns writes one byte when the namespace is connected. */
async function isReady(report: unknown, signal: AbortSignal): Promise<boolean> {
  if (!(report instanceof Readable)) {
    return false;
  }
  addAbortSignal(AbortSignal.any([signal, AbortSignal.timeout(READY_TIMEOUT_MS)]), report);
  for await (const bytes of report) {
    return Buffer.byteLength(bytes) > 0;
  }
  return false;
}

/**
 * slirp4netns unmounts the machine's folders in its sandbox. Without a mount namespace of its own, mounts below them,
 * such as network namespaces of pods, would end on the machine too.
 */
function slirpCommand({ network, pid }: AttachInput): string[] {
  // The rules in the namespace close the machine's loopback, except for single ports.
  return [
    network.joinsUserNamespace ? [] : [network.unshare, '--mount', '--propagation=private', '--'],
    [network.slirp4netns],
    ['--configure', `--mtu=${MTU}`, '--ready-fd=3', '--netns-type=path'],
    network.joinsUserNamespace ? [`--userns-path=/proc/${pid}/ns/user`] : ['--enable-sandbox'],
    ['--enable-seccomp'],
    [`/proc/${pid}/ns/net`, NETWORK_INTERFACE],
  ].flat();
}

/** Waits until the rules are applied: an earlier slirp4netns would configure the namespace at the same time. */
async function namespaceReady({ pid, signal, network }: AttachInput): Promise<void> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(READY_TIMEOUT_MS)]);
  const bubblewrap = await realpath(network.bwrap);
  for (;;) {
    const program = await readlink(`/proc/${pid}/exe`).catch(() => null);
    if (program === null) {
      throw new SandboxBackendError('The sandbox cannot be started: its program ended at once.');
    }
    if (program === bubblewrap) {
      return;
    }
    await delay(POLL_MS, undefined, { signal: deadline });
  }
}

async function readRecord(paths: SandboxPaths): Promise<NetworkRecord | null> {
  return parseStartedProcess(parseJson(await readIfExists(paths.network)));
}
