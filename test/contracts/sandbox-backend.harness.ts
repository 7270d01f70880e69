import type { SandboxBackend, SandboxLaunch } from '../../src/v1/sandboxes/backends/sandbox-backend.js';

/** What a backend of sandboxes needs to run through the contract suite. */
export interface SandboxBackendHarness {
  /** Prepared, and empty. */
  backend: SandboxBackend;
  /** Another object over what the first one left, as after a restart of the service. */
  reopen(): Promise<SandboxBackend>;
  /** A launch of our own agent server under a new id, with changes. */
  launch(changes?: Partial<SandboxLaunch>): SandboxLaunch;
  /** A launch of a program that prints `it is broken` and ends with exit code 7. */
  brokenLaunch(): SandboxLaunch;
  /** A file of the machine that a tool must not be able to read, and its text. */
  hidden: { file: string; text: string };
  /** Removes all sandboxes and whatever else is left. */
  close(): Promise<void>;
}

/** What differs between backends. */
export interface SandboxPromises {
  /** Tools are kept from the machine, from other sandboxes and from the agent server. */
  isolated: boolean;
  /** A sandbox sees its own files under the paths under which another one sees its own. */
  samePaths: boolean;
  /** Milliseconds for one test. */
  timeoutMs: number;
}
