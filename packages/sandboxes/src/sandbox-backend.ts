import type { Socket } from 'node:net';

export interface PodPort {
  namespace: string;
  pod: string;
  port: number;
}

export interface DiskSpace {
  /** Bytes that users other than root may still write. */
  freeBytes: number;
  totalBytes: number;
  /** Number of files that can still be made; null where the file system has no limit. */
  freeFiles: number | null;
}

/** A sandbox could not be started, stopped or inspected. The message is safe to show and says what to do. */
export class SandboxBackendError extends Error {
  override readonly name: string = 'SandboxBackendError';
}

/** The sandbox is gone, but some of its files are left. The backend's sweeps try again. */
export class SandboxFilesLeftError extends SandboxBackendError {
  override readonly name = 'SandboxFilesLeftError';
}

/** The engine or cluster cannot be asked right now, so the state of sandboxes is unknown. Callers try again later. */
export class SandboxBackendUnavailableError extends Error {
  override readonly name = 'SandboxBackendUnavailableError';
}

/** A step of the agent, and its webhooks, end within this time after SIGTERM. */
export const GRACE_SECONDS = 10;

/** Clients of OpenHands put files here without asking where an agent works. */
export const SHARED_FOLDER = '/workspace';
/** The folder where those clients assume that an agent works: a sandbox has it, or its agent server translates the path. */
export const PROJECT_FOLDER = `${SHARED_FOLDER}/project`;

export type SandboxProgram =
  /** Our own agent server. `image` is for backends that run images; null is the backend's default. */
  | { kind: 'native'; image: string | null }
  /** Speaks the agent-server protocol on `{port}` and `{host}` in `args`, and `PORT` in its environment. */
  | { kind: 'command'; command: string; args: string[] }
  /** An image whose entry point is an agent server that listens on port 8000. */
  | { kind: 'image'; image: string; args: string[] };

/** A merge patch (RFC 7396), which replaces no label and no annotation of ours. */
export interface PodTemplatePatch {
  metadata?:
    | { labels?: Record<string, string> | undefined; annotations?: Record<string, string> | undefined }
    | undefined;
  spec?: Readonly<Record<string, unknown>> | undefined;
}

export interface PodSettings {
  /** Fixed at the first start. */
  volumeSize: string | null;
  storageClass: string | null;
  serviceAccount: string | null;
  template: PodTemplatePatch;
}

/** The way out of a sandbox that has rules. */
export interface EgressAccess {
  /** The proxy's port; at which host a sandbox finds it is the backend's to know. */
  port: number;
  /** Identifies the sandbox to the proxy. */
  credential: string;
  /** PEM of the authority by which the proxy opens TLS; null when no rule needs that. */
  authority: string | null;
  /** False where it is there for credentials alone, and the network is as open as without. */
  isOnlyWay: boolean;
}

/** Everything a backend needs to start or resume a sandbox; read from the row each time. */
export interface SandboxLaunch {
  /** 22 characters of base62, chosen before the backend is called. */
  id: string;
  /** The key of the agent server's clients, never in an argument nor in the environment of our own server. */
  sessionKey: string;
  program: SandboxProgram;
  /** The specification's variables, without secrets, and the storage key of a stock agent server. */
  env: Record<string, string>;
  /** Relative to the sandbox's own folder; `PROJECT_FOLDER` is wherever the backend keeps the workspace. */
  workingDir: string;
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  pod: PodSettings | null;
  /** Numbers inside a network of its own; elsewhere the backend picks them. Variables of these names tell programs. */
  ports: Readonly<Record<string, number>>;
  /** Set where it may reach nothing but through a proxy. */
  egress?: EgressAccess | undefined;
  /** Base address of the service's webhooks (`…/api/v1/webhooks`) as seen from the sandbox; null sends none. */
  callbackUrl: string | null;
  /** Receives a line for users about long work (an image being pulled). */
  onProgress?: (detail: string) => void;
  /** Receives a sentence for users about a request that has no effect in this backend. */
  onShortfall?: (sentence: string) => void;
}

export type WarmLaunch = Omit<SandboxLaunch, 'sessionKey'>;

/** A launch with a session key or without one, in which case the program waits for it. */
export type ProgramLaunch = WarmLaunch & { sessionKey: string | null };

/** What differs between sandboxes is added for each. */
export type LaunchTemplate = Omit<WarmLaunch, 'id' | 'egress' | 'onProgress' | 'onShortfall'>;

/** What the ways out of sandboxes have in common. */
export interface EgressKind extends Pick<EgressAccess, 'port' | 'isOnlyWay'> {
  opensTls: boolean;
  /** Another text where credentials are derived from another key. */
  derivation: string;
}

export type WarmTemplate = LaunchTemplate & { egress: EgressKind | undefined };

/** Starts programs that wait for their session keys. The service tracks them and hands each out once. */
export interface WarmStarts {
  /** Names what `start` would give now; other names are outdated. Null when the program cannot wait for a key. */
  fingerprint(template: WarmTemplate): Promise<string | null>;
  /** Like `SandboxBackend.start`, which must then be called for the id before the program serves clients. */
  start(launch: WarmLaunch, signal: AbortSignal): Promise<void>;
}

export interface SandboxExit {
  code: number | null;
  signal: string | null;
  outOfMemory: boolean;
  /** Set where the backend itself ended the program: a sentence for its owner. */
  cause?: string;
}

export interface SandboxFacts {
  id: string;
  /** `running`: the program is alive, even if it does not answer; `stopped`: it has ended, and its files are there. */
  state: 'running' | 'stopped' | 'missing';
  /** Address of the agent server (`http://127.0.0.1:41234`); null until that is known. */
  address: string | null;
  /** Addresses of the launch's other ports, by name; empty unless it runs. A program need not listen there. */
  ports: Readonly<Record<string, string>>;
  exit: SandboxExit | null;
  /** Epoch milliseconds of the first start; null when it is not known. */
  createdAt: number | null;
  /** Something that only a pause ends takes room in its place, although it has ended itself. */
  isReplaced?: true;
}

export type SandboxBackendKind = 'process' | 'docker' | 'kubernetes';

export type SandboxIsolation = 'none' | 'bwrap' | 'container';

export interface SandboxNotice {
  level: 'log' | 'warn';
  message: string;
  sandboxId: string;
  detail: string;
}

/** A line for the operator's log. A warning is about what was wanted and cannot be had. */
export interface PreparationLine {
  level: 'log' | 'warn';
  text: string;
}

export interface BackendSweep {
  leftovers: number;
  notices: SandboxNotice[];
}

export interface SandboxBackendOptions {
  /** Marks what is ours (the label `slipway.instance`, or a file in the sandbox's folder). */
  instanceId: string;
  /** `SANDBOX_ADDRESS`: a host name or IP of this machine, without port. Null: programs listen on loopback only. */
  listenAddress: string | null;
}

/**
 * Port to where sandboxes run. Every method is idempotent and safe to repeat after a crash between its steps.
 * A second process of the host must see all state, so none is only in memory.
 */
export abstract class SandboxBackend {
  abstract readonly kind: SandboxBackendKind;

  /** What `prepare()` found; before that, the weakest isolation to expect. */
  abstract readonly isolation: SandboxIsolation;

  /** What `prepare()` found: why sandboxes that a runtime runs cannot have an egress proxy, and what would help; null: they can. */
  proxyObstacle(_runtime: string | null): string | null {
    return 'no egress proxy belongs to these sandboxes';
  }

  /** Null: sandboxes are not kept warm here. */
  readonly warm: WarmStarts | null = null;

  /** Connects to addresses of sandboxes that only the backend reaches; null when there are none. */
  readonly connect: ((port: PodPort) => Promise<Socket>) | null = null;

  /** Before the service listens; returns lines for the log. @throws SandboxBackendError, …UnavailableError */
  abstract prepare(): Promise<PreparationLine[]>;

  /** Gives a waiting program its key. Returns before it answers. @throws SandboxBackendError that a user can act on */
  abstract start(launch: SandboxLaunch, signal: AbortSignal): Promise<void>;

  /** Reports `missing` rather than throwing when there is nothing under the id. */
  abstract inspect(id: string): Promise<SandboxFacts>;

  /** The last lines that the program printed, at most about 4 KB; empty when there are none. */
  abstract logTail(id: string): Promise<string>;

  /**
   * Ends the program and all it started, SIGTERM first, and keeps its files. `mayStop` is asked once it is known what
   * runs: after a stall that may be a later start.
   * @throws SandboxBackendError when something is left, or when it must not be stopped any more
   */
  abstract pause(id: string, mayStop?: () => boolean): Promise<void>;

  /** Starts a stopped sandbox with the files it had. @throws SandboxBackendError when they are gone */
  abstract resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void>;

  /** Ends the program and removes its files, if any. @throws SandboxFilesLeftError when some cannot be removed now */
  abstract remove(id: string): Promise<void>;

  /** Every sandbox that carries our instance's label, stopped ones too. */
  abstract list(): Promise<SandboxFacts[]>;

  /** The disk that holds the sandboxes; null when it is not visible from here. Cheap, because it is called often. */
  abstract disk(): Promise<DiskSpace | null>;

  /** Calls the listener soon after a change, where the backend reports changes; others still have to be listed. */
  onChange(_listener: () => void): void {}

  /** Ends what the backend itself has open. Sandboxes run on. */
  async disconnect(): Promise<void> {}

  /** Removes leftovers and ends what fills the disk. Called repeatedly; long work goes on after it returns. */
  async sweep(): Promise<BackendSweep> {
    return { leftovers: 0, notices: [] };
  }
}

/** What an agent server reads from its standard input, once. */
export function sessionKeyLine(sessionKey: string): string {
  return `${JSON.stringify({ session_api_key: sessionKey })}\n`;
}

/** @throws SandboxBackendError when what runs must not be stopped any more */
export function requireMayStop(mayStop: (() => boolean) | undefined): void {
  if (mayStop?.() === false) {
    throw new SandboxBackendError('The sandbox was not stopped: its lease has ended.');
  }
}

/** False when files are left: nothing runs any more, and the backend's sweeps go on with them and log it. */
export async function removeSandbox(backend: SandboxBackend, id: string): Promise<boolean> {
  try {
    await backend.remove(id);
    return true;
  } catch (error) {
    if (error instanceof SandboxFilesLeftError) {
      return false;
    }
    throw error;
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
