import type { Socket } from 'node:net';
import type { PodPort } from '../../../common/kubernetes/pod-socket.js';
import type { DiskSpace } from './disk-space.js';

/** A sandbox could not be started, stopped or inspected. The message is safe to show and says what to do. */
export class SandboxBackendError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SandboxBackendError';
  }
}

/** The sandbox is gone, but some of its files are still there. The backend goes on trying in its sweeps. */
export class SandboxFilesLeftError extends SandboxBackendError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SandboxFilesLeftError';
  }
}

/**
 * What runs the sandboxes cannot be asked right now, so nothing is known about them. Whoever asked tries again later; a
 * sandbox that runs goes on.
 */
export class SandboxBackendUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SandboxBackendUnavailableError';
  }
}

/** Where clients of OpenHands put files, without asking where an agent works. */
export const SHARED_FOLDER = '/workspace';
/** The folder that they assume an agent works in: every sandbox has it, or its agent server translates the path. */
export const PROJECT_FOLDER = `${SHARED_FOLDER}/project`;

/** What runs inside a sandbox. */
export type SandboxProgram =
  /** Our own agent server. `image`: used by backends that run images; null means the backend's default. */
  | { kind: 'native'; image: string | null }
  /** A program that speaks the agent-server protocol on the port it is given (`{port}` and `{host}` in `args`, `PORT` in its environment). */
  | { kind: 'command'; command: string; args: string[] }
  /** An image whose entry point is an agent server that listens on port 8000. */
  | { kind: 'image'; image: string; args: string[] };

/** What a specification says about pods of a cluster. Null: the backend's default. */
export interface PodSettings {
  /** Kept from the first start of a sandbox on. */
  volumeSize: string | null;
  storageClass: string | null;
  serviceAccount: string | null;
}

/** Everything a backend needs to start or resume a sandbox; read from the row each time. */
export interface SandboxLaunch {
  /** Chosen before the backend is called: 22 characters of base62. */
  id: string;
  /** What clients of the agent server must present. Never in an argument, and never in the environment of our own server. */
  sessionKey: string;
  program: SandboxProgram;
  /** Additional variables: the specification's, no secrets; and what a stock agent server encrypts its files with. */
  env: Record<string, string>;
  /** Where the workspace is kept, relative to the sandbox's own folder; `PROJECT_FOLDER`: wherever the backend keeps it. */
  workingDir: string;
  /** Null: the backend's default. */
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  /** Null: it says nothing about them. */
  pod: PodSettings | null;
  /**
   * Ports for programs that agents start, by name (`WORKER_1`): the number inside where sandboxes have networks of their
   * own; elsewhere the backend picks a free one. The program finds it in the variable of that name, and the address to
   * listen on in `LISTEN_HOST`.
   */
  ports: Readonly<Record<string, number>>;
  /** Base address of the service's webhooks (`…/api/v1/webhooks`) as seen from the sandbox; null: none are sent. */
  callbackUrl: string | null;
  /** Receives a line for users about long work (an image being pulled). */
  onProgress?: (detail: string) => void;
  /** Receives a sentence for users about a request that the backend cannot fulfil, although the sandbox starts. */
  onShortfall?: (sentence: string) => void;
}

/** A launch that nobody has asked for yet: its program waits for its session key. */
export type WarmLaunch = Omit<SandboxLaunch, 'sessionKey'>;

/** What the warm sandboxes of one specification have in common. */
export type WarmTemplate = Omit<WarmLaunch, 'id' | 'onProgress' | 'onShortfall'>;

/** Starts programs that wait for their session keys. The service knows which ones there are, and hands each out once. */
export interface WarmStarts {
  kind: 'starts';
  /**
   * A name for what `start` would give now, image, limits and version of the agent server included: a warm sandbox of
   * another name is outdated.
   *
   * @returns null when the program cannot wait for a key
   */
  fingerprint(template: WarmTemplate): Promise<string | null>;
  /** As `SandboxBackend.start`, but the program serves nobody until `SandboxBackend.start` is called for its id. */
  start(launch: WarmLaunch, signal: AbortSignal): Promise<void>;
}

/** How a program ended. */
export interface SandboxExit {
  code: number | null;
  signal: string | null;
  outOfMemory: boolean;
  /** Set where the backend itself ended the program: a sentence for its owner. */
  cause?: string;
}

/** What a backend actually has. */
export interface SandboxFacts {
  id: string;
  /** `running`: the program is alive, whether or not it answers yet; `stopped`: it has ended, but its files are there. */
  state: 'running' | 'stopped' | 'missing';
  /** Where the agent server listens right now (`http://127.0.0.1:41234`); null until that is known. */
  address: string | null;
  /** Addresses of the launch's other ports, by name; empty unless it runs. Says nothing about whether anything listens there. */
  ports: Readonly<Record<string, string>>;
  /** Why it is stopped, if that is known. */
  exit: SandboxExit | null;
  /** Epoch milliseconds of the first start; null when it is not known. */
  createdAt: number | null;
}

/** Where sandboxes run: on this machine, in an engine's containers, in a cluster's pods. */
export type SandboxBackendKind = 'process' | 'docker' | 'kubernetes';

/** What keeps sandboxes from each other, from the machine and from the service. */
export type SandboxIsolation = 'none' | 'bwrap' | 'container';

/** Something to log about a sandbox. */
export interface SandboxNotice {
  level: 'log' | 'warn';
  /** A constant text. */
  message: string;
  sandboxId: string;
  detail: string;
}

/** A line for the log about how sandboxes run here. A warning is about what was wanted and cannot be had. */
export interface PreparationLine {
  level: 'log' | 'warn';
  text: string;
}

/** What a sweep found and did. */
export interface BackendSweep {
  /** Removed sandboxes of which some files are still there. */
  leftovers: number;
  notices: SandboxNotice[];
}

/** Options that all backends share. */
export interface SandboxBackendOptions {
  /** Marks what is ours (the label `slipway.instance`, or a file in the sandbox's folder). */
  instanceId: string;
  /**
   * `SANDBOX_ADDRESS`: a host name or IP of this machine, without port. Programs then listen there (docker publishes
   * their port there, on all addresses for a name) instead of on 127.0.0.1, and `SandboxFacts.address` names it.
   * Null: loopback only.
   */
  listenAddress: string | null;
}

/**
 * Port to where sandboxes run. Every method is idempotent and safe to repeat after a crash between its steps; none keeps
 * state in memory that a second process on the same host would miss. Options in, plain facts out: no rows, no
 * configuration.
 */
export abstract class SandboxBackend {
  abstract readonly kind: SandboxBackendKind;

  /** What `prepare()` found; before that, the weakest isolation to expect. */
  abstract readonly isolation: SandboxIsolation;

  /** How sandboxes are kept warm here; null: they are not. */
  readonly warm: WarmStarts | null = null;

  /** Connects to addresses of sandboxes that only the backend reaches; null: it has none. */
  readonly connect: ((port: PodPort) => Promise<Socket>) | null = null;

  /**
   * Checks that sandboxes can run here, before the service listens.
   *
   * @returns lines for the log (which isolation was found, what is missing)
   * @throws SandboxBackendError with one line for the operator when they cannot; SandboxBackendUnavailableError when that
   *   cannot be found out now
   */
  abstract prepare(): Promise<PreparationLine[]>;

  /**
   * Get-or-create by id: starts the program, or leaves it alone if it already runs. One that waits for its session key
   * (`warm`) gets that of the launch. Returns as soon as it was started; whether it answers is for the caller to find out.
   *
   * @throws SandboxBackendError with a cause that a user can act on
   */
  abstract start(launch: SandboxLaunch, signal: AbortSignal): Promise<void>;

  /** Reports `missing` rather than throwing when there is nothing under the id. */
  abstract inspect(id: string): Promise<SandboxFacts>;

  /** The last lines that the program printed, at most about 4 KB; empty when there are none. */
  abstract logTail(id: string): Promise<string>;

  /**
   * Ends the program and everything it started, politely first, and keeps its files. Does nothing when it is stopped.
   *
   * @param mayStop asked once it is known what runs: a caller that stalled until then may have lost its lease, and what
   *   runs may be a later start
   * @throws SandboxBackendError when something is left, or when it must not be stopped any more
   */
  abstract pause(id: string, mayStop?: () => boolean): Promise<void>;

  /**
   * Starts a stopped sandbox again with the files it had.
   *
   * @throws SandboxBackendError when its files are gone
   */
  abstract resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void>;

  /**
   * Ends the program and removes its files. Does nothing when there is nothing.
   *
   * @throws SandboxFilesLeftError when it is gone, but for files that cannot be removed now
   */
  abstract remove(id: string): Promise<void>;

  /** Every sandbox here that carries our instance's label, stopped ones too. */
  abstract list(): Promise<SandboxFacts[]>;

  /** The disk that holds the sandboxes; null when it cannot be seen from here. Cheap, because it is called often. */
  abstract disk(): Promise<DiskSpace | null>;

  /**
   * Calls the listener soon after sandboxes have changed, where the backend learns of that without being asked. An
   * optimization only: whoever listens lists the sandboxes every now and then all the same.
   */
  onChange(_listener: () => void): void {}

  /** Ends what the backend itself has open. Sandboxes run on. */
  async disconnect(): Promise<void> {}

  /**
   * Does what nobody asks for: removes what earlier removals left, and ends what fills the disk. Called again and again while the service runs; long work
   * goes on after it has returned.
   */
  async sweep(): Promise<BackendSweep> {
    return { leftovers: 0, notices: [] };
  }
}

/** @throws SandboxBackendError when what runs must not be stopped any more */
export function requireMayStop(mayStop: (() => boolean) | undefined): void {
  if (mayStop?.() === false) {
    throw new SandboxBackendError('The sandbox was not stopped: its lease has ended.');
  }
}

/** Reads ports by name from a stored document; empty for anything that is not an object of numbers. */
export function parsePorts(value: unknown): Record<string, number> {
  if (typeof value !== 'object' || value === null) {
    return {};
  }
  const entries = Object.entries(value).filter((entry): entry is [string, number] =>
    Number.isInteger(entry[1]),
  );
  return Object.fromEntries(entries);
}
