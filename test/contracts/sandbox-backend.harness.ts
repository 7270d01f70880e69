import type { SandboxBackend, SandboxLaunch } from '../../src/v1/sandboxes/backends/sandbox-backend.js';

/** What the contract suite needs of a sandbox backend. */
export interface SandboxBackendHarness {
  /** Prepared, and empty. */
  backend: SandboxBackend;
  /** Another object over the same sandboxes, as after a restart of the service. */
  reopen(): Promise<SandboxBackend>;
  /** A launch of our own agent server under a new id. */
  launch(changes?: Partial<SandboxLaunch>): SandboxLaunch;
  /** A launch of a program that prints `it is broken` and ends with exit code 7. */
  brokenLaunch(): SandboxLaunch;
  /** A file of the machine that tools must not be able to read, and its text. */
  hidden: { file: string; text: string };
  /** Removes all sandboxes and everything else. */
  close(): Promise<void>;
}

/** What differs between backends. */
export interface SandboxPromises {
  /** Whether tools are kept from the machine, from other sandboxes and from the agent server. */
  isolated: boolean;
  /** Whether the files of every sandbox have the same paths inside. */
  samePaths: boolean;
  /** Whether it starts programs that wait for their keys (`SandboxBackend.warm`); by default it does. */
  keepsWarm?: boolean;
  /** Milliseconds for one test. */
  timeoutMs: number;
}
