import { afterAll, afterEach, beforeAll } from '@jest/globals';
import type { SandboxBackend, SandboxLaunch } from './sandbox-backend.js';
import { type SandboxClient, sandboxAnswers } from '../../../test/support/sandbox-client.js';
import { TEST_CERTIFICATE } from '../../../test/support/tls-certificate.js';
import { until } from '../../../test/support/until.js';

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
}

/** A sandbox that several tests look at, because a start takes longer than most of them. */
export interface SharedSandbox {
  harness: SandboxBackendHarness;
  launch: SandboxLaunch;
  client: SandboxClient;
}

/** Starts one sandbox for all tests of the `describe` that calls this; they leave it running. */
export function shareSandbox(makeHarness: () => Promise<SandboxBackendHarness>): () => SharedSandbox {
  let harness: SandboxBackendHarness | undefined;
  let shared: SharedSandbox | undefined;

  beforeAll(async () => {
    harness = await makeHarness();
    const launch = harness.launch({ env: { SLIPWAY_AUTHORITY_0: TEST_CERTIFICATE } });
    shared = { harness, launch, client: await startedSandbox(harness, launch) };
  });

  afterAll(async () => {
    await harness?.close();
  });

  return () => {
    if (shared === undefined) {
      throw new Error('the sandbox of these tests has not started');
    }
    return shared;
  };
}

/** Makes one backend for all tests of the `describe` that calls this; each of them begins without any sandbox. */
export function shareBackend(makeHarness: () => Promise<SandboxBackendHarness>): () => SandboxBackendHarness {
  let harness: SandboxBackendHarness | undefined;

  beforeAll(async () => {
    harness = await makeHarness();
  });

  afterEach(async () => {
    const { backend } = made();
    await Promise.all((await backend.list()).map(async ({ id }) => await backend.remove(id)));
  });

  afterAll(async () => {
    await harness?.close();
  });

  const made = (): SandboxBackendHarness => {
    if (harness === undefined) {
      throw new Error('the backend of these tests was not made');
    }
    return harness;
  };
  return made;
}

/** Starts a sandbox, and waits until its agent server answers. */
export async function startedSandbox(
  { backend }: Pick<SandboxBackendHarness, 'backend'>,
  launch: SandboxLaunch,
): Promise<SandboxClient> {
  await backend.start(launch, new AbortController().signal);
  return await sandboxAnswers(backend, launch);
}

/** Waits until its program has ended. */
export async function untilStopped(backend: SandboxBackend, id: string): Promise<void> {
  await until(async () => (await backend.inspect(id)).state === 'stopped');
}
