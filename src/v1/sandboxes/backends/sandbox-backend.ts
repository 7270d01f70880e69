import type { DiskSpace } from './disk-space.js';

/** A sandbox could not be started, stopped or looked at. The message is safe to show and says what to do. */
export class SandboxBackendError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SandboxBackendError';
  }
}

/** What runs inside a sandbox. */
export type SandboxProgram =
  /** Our own agent server. `image`: where a backend runs images; null means the backend's own default. */
  | { kind: 'native'; image: string | null }
  /** A program that speaks the agent-server protocol on the port it is given (`{port}` and `{host}` in `args`, `PORT` in its environment). */
  | { kind: 'command'; command: string; args: string[] }
  /** An image whose entry point is an agent server that listens on port 8000. */
  | { kind: 'image'; image: string; args: string[] };

/** Everything a backend is told to start or to resume a sandbox; read anew from the row each time. */
export interface SandboxLaunch {
  /** Chosen before the backend is asked: 22 characters of base62. */
  id: string;
  /** What clients of the agent server must present. Never in an argument, and in no environment of our own server. */
  sessionKey: string;
  program: SandboxProgram;
  /** Further variables of the program, from its specification; holds no secret. */
  env: Record<string, string>;
  /** Folder inside the sandbox; relative ones lie in the sandbox's own folder. */
  workingDir: string;
  /** Null: the backend's default. */
  cpu: number | null;
  memoryMb: number | null;
  runtime: string | null;
  network: string | null;
  /**
   * Ports for what agents start themselves, by name (`WORKER_1`): the number inside where sandboxes have networks of
   * their own; elsewhere each gets a free one. The variable of that name tells it, `LISTEN_HOST` where to listen.
   */
  ports: Readonly<Record<string, number>>;
  /** Base address of the service's webhooks (`…/api/v1/webhooks`) as the sandbox reaches it; null: none are sent. */
  callbackUrl: string | null;
  /** A line for people about long work (an image being pulled). */
  onProgress?: (detail: string) => void;
  /** A sentence for people on what of this cannot be had, while the sandbox starts all the same. */
  onShortfall?: (sentence: string) => void;
}

/** How a program ended. */
export interface SandboxExit {
  code: number | null;
  signal: string | null;
  outOfMemory: boolean;
}

/** What a backend really has. */
export interface SandboxFacts {
  id: string;
  /** `running`: the program lives, whether or not it answers yet; `stopped`: it does not, its files are there. */
  state: 'running' | 'stopped' | 'missing';
  /** Where the agent server listens (`http://127.0.0.1:41234`), as known right now; null until it is. */
  address: string | null;
  /** Where the further ports of the launch are reached, by name; empty unless it runs. Whether anything listens is not known. */
  ports: Readonly<Record<string, string>>;
  /** Why it is stopped, where that is known. */
  exit: SandboxExit | null;
  /** Epoch milliseconds of the first start; null when it is not known. */
  createdAt: number | null;
}

/** What keeps sandboxes from each other, from the machine and from the service. */
export type SandboxIsolation = 'none' | 'bwrap' | 'container';

/** What every backend is told about the machine and the installation; part of each backend's options. */
export interface SandboxBackendOptions {
  /** Marks what is ours (the label `slipway.instance`, or a file of the sandbox's folder). */
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
 * state in memory that a second process of the same host would miss. Options in, plain facts out: no rows, no
 * configuration.
 */
export abstract class SandboxBackend {
  abstract readonly kind: 'process' | 'docker';

  /** What was found by `prepare()`; before that, the least that may be hoped for. */
  abstract readonly isolation: SandboxIsolation;

  /**
   * Looks whether sandboxes can run here, before the service listens.
   *
   * @returns lines for the log (which isolation was found, what is missing)
   * @throws SandboxBackendError with one line for the operator when none can
   */
  abstract prepare(): Promise<string[]>;

  /**
   * Get-or-create by id: starts the program, or leaves the one alone that runs already. Returns as soon as it was
   * started; whether it answers is for the caller to ask.
   *
   * @throws SandboxBackendError with a cause that a user can act on
   */
  abstract start(launch: SandboxLaunch, signal: AbortSignal): Promise<void>;

  /** What is there under the id; `missing` rather than an error when nothing is. */
  abstract inspect(id: string): Promise<SandboxFacts>;

  /** The last lines that the program printed, at most about 4 KB; empty when there are none. */
  abstract logTail(id: string): Promise<string>;

  /** Ends the program and everything it started, politely first, and keeps its files. Nothing happens when it is stopped. */
  abstract pause(id: string): Promise<void>;

  /**
   * Starts a stopped sandbox again with the files it had.
   *
   * @throws SandboxBackendError when its files are gone
   */
  abstract resume(launch: SandboxLaunch, signal: AbortSignal): Promise<void>;

  /** Ends the program and removes its files. Nothing happens when there is nothing. */
  abstract remove(id: string): Promise<void>;

  /** Every sandbox here that carries our instance's label, stopped ones too. */
  abstract list(): Promise<SandboxFacts[]>;

  /** The disk that sandboxes lie on; null when it cannot be seen from here. Cheap: it is asked again and again. */
  abstract disk(): Promise<DiskSpace | null>;
}

/** Ports by name, of a document that was written earlier; empty for what is none. */
export function parsePorts(value: unknown): Record<string, number> {
  if (typeof value !== 'object' || value === null) {
    return {};
  }
  const entries = Object.entries(value).filter((entry): entry is [string, number] =>
    Number.isInteger(entry[1]),
  );
  return Object.fromEntries(entries);
}

/**
 * What programs in a sandbox are told of the ports that they may use.
 *
 * @param ports numbers by name, as programs see them
 * @param host where they should listen, so that the ports are reached from outside
 */
export function portVariables(ports: Readonly<Record<string, number>>, host: string): Record<string, string> {
  const variables = Object.entries(ports).map(([name, port]) => [name, String(port)] as const);
  if (variables.length === 0) {
    return {};
  }
  const named = { ...Object.fromEntries(variables), LISTEN_HOST: host };
  // Our agent server hands on to tools what it knows by name, and this.
  return { ...named, SLIPWAY_TOOL_VARIABLES: Object.keys(named).join(',') };
}
