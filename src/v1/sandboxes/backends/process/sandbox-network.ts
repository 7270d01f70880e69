import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readlink, rename, rm, writeFile } from 'node:fs/promises';
import { addAbortSignal, Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { jsonNumber, jsonText, parseJson } from '../../../../common/json-access.js';
import { sendSignal } from '../../../../common/processes/end-processes.js';
import { withoutInherited } from '../../../../common/processes/inherited-descriptors.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import type { IsolatedNetwork } from './isolation.js';
import { identifyProcess, isProgramAlive, type ProcessIdentity } from './program-record.js';
import { readIfExists, readLogTail, type SandboxPaths } from './sandbox-files.js';

const READY_TIMEOUT_MS = 10_000;
const REPORT_POLL_MS = 5;
/** The largest packets that slirp4netns takes; small ones cost a system call each. */
const MTU = 65_520;
/** What a sandbox's network is connected by. */
export const NETWORK_INTERFACE = 'tap0';

/** The process that connects a sandbox's network namespace. */
interface NetworkRecord extends ProcessIdentity {
  /** The start of the sandbox that it belongs to. */
  run: string;
}

interface AttachInput {
  paths: SandboxPaths;
  network: IsolatedNetwork;
  /** Identifies the start of the sandbox. */
  run: string;
  /** The variable that marks the processes of that start, as `NAME=value`. */
  marker: string;
  signal: AbortSignal;
}

/**
 * Connects a sandbox's network namespace to the internet by a process of slirp4netns, which outlives the service. Does
 * nothing when that has happened.
 *
 * @throws SandboxBackendError when the namespace does not come up or cannot be connected
 */
export async function attachNetwork(input: AttachInput): Promise<void> {
  const { paths, run } = input;
  const known = await readRecord(paths);
  if (known?.run === run && isProgramAlive(known)) {
    return;
  }
  const holder = await namespaceHolder(input);
  const log = openSync(paths.networkLog, 'w', 0o600);
  const [name = '', value = ''] = input.marker.split(/=(.*)/s);
  const child = spawn(input.network.slirp4netns, slirpArguments(input, holder), {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', [name]: value },
    cwd: '/',
    detached: true,
    stdio: withoutInherited(['ignore', log, log, 'pipe']),
  });
  closeSync(log);
  // A program that cannot be run has no pid, and its pipe closes at once.
  child.on('error', () => undefined);
  child.unref();
  try {
    if (child.pid !== undefined) {
      await writeRecord(paths, { ...identifyProcess(child.pid), run });
    }
    if (!(await isReady(child.stdio[3], input.signal))) {
      throw new Error(await readLogTail(paths.networkLog));
    }
  } catch (error) {
    child.kill('SIGKILL');
    throw new SandboxBackendError(
      'The sandbox cannot be started: slirp4netns did not connect its network. SANDBOX_NETWORK=shared does without.',
      { cause: error },
    );
  }
}

/** Whether the process that connects this start of the sandbox lives. */
export async function isNetworkAttached(paths: SandboxPaths, run: string): Promise<boolean> {
  const record = await readRecord(paths);
  return record !== null && record.run === run && isProgramAlive(record);
}

/**
 * Ends the process that connected a sandbox.
 *
 * @param run only of this start; null: of any
 */
export async function detachNetwork(paths: SandboxPaths, run: string | null): Promise<void> {
  const record = await readRecord(paths);
  if (record !== null && (run === null || record.run === run)) {
    if (isProgramAlive(record)) {
      sendSignal(record.pid, 'SIGKILL');
    }
    await rm(paths.network, { force: true });
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

function slirpArguments({ network }: AttachInput, holder: number): string[] {
  // The loopback of the machine is closed by the rules in the namespace, which leave single ports open.
  return [
    ['--configure', `--mtu=${MTU}`, '--ready-fd=3', '--netns-type=path'],
    network.joinsUserNamespace ? [`--userns-path=/proc/${holder}/ns/user`] : ['--enable-sandbox'],
    ['--enable-seccomp'],
    [`/proc/${holder}/ns/net`, NETWORK_INTERFACE],
  ].flat();
}

/** A process in the sandbox's network namespace, as bubblewrap reported it when it created the namespace. */
async function namespaceHolder({ paths, signal }: AttachInput): Promise<number> {
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(READY_TIMEOUT_MS)]);
  for (;;) {
    const report = parseJson(await readIfExists(paths.namespace));
    const pid = jsonNumber(report, 'child-pid');
    const namespace = jsonNumber(report, 'net-namespace');
    if (pid !== null && namespace !== null) {
      // The pid may be another process's by now.
      const found = await readlink(`/proc/${pid}/ns/net`).catch(() => null);
      if (found !== `net:[${namespace}]`) {
        throw new SandboxBackendError('The sandbox cannot be started: its program ended at once.');
      }
      return pid;
    }
    deadline.throwIfAborted();
    await delay(REPORT_POLL_MS, undefined, { signal: deadline });
  }
}

async function readRecord(paths: SandboxPaths): Promise<NetworkRecord | null> {
  const value = parseJson(await readIfExists(paths.network));
  const pid = jsonNumber(value, 'pid');
  const run = jsonText(value, 'run');
  return pid === null || run === null
    ? null
    : {
        pid,
        startTime: jsonText(value, 'startTime') ?? '',
        bootId: jsonText(value, 'bootId') ?? '',
        run,
      };
}

async function writeRecord(paths: SandboxPaths, record: NetworkRecord): Promise<void> {
  await writeFile(`${paths.network}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  await rename(`${paths.network}.new`, paths.network);
}
