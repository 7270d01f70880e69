import { afterEach } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { jsonAt } from '@slipway/common/json-access.js';
import { GuardedHttpClient } from '../../src/common/http/guarded-http.client.js';
import type { CallBounds } from '../../src/git-providers/git-provider.js';
import { GithubProvider } from '../../src/git-providers/github/github.provider.js';
import { type FakeGithubOptions, startFakeGithub, startFakeGithubStorage } from '../fakes/fake-github.js';
import type { FakeRequest } from '../fakes/fake-server.js';
import type { FakeWorld } from '../fakes/fake-world.js';
import type { GitProviderHarness } from './git-provider.harness.js';

/** The adapter in front of a fake GitHub, with the pauses it wanted to make, in milliseconds. */
export interface GithubHarness extends GitProviderHarness {
  delays: number[];
}

/** When the tests of `githubOpener` take place, epoch milliseconds. */
export const NOW = Date.parse('2026-11-21T12:00:00Z');

/** @param options `now` is the clock of the adapter, the machine's by default */
export async function openGithub(
  world: FakeWorld,
  options: FakeGithubOptions & { now?: () => number } = {},
): Promise<GithubHarness> {
  const storage = await startFakeGithubStorage(world);
  const server = await startFakeGithub(world, { storage: storage.origin, ...options });
  const delays: number[] = [];
  const http = new GuardedHttpClient({
    allowlist: HostAllowlist.parse([server.origin, storage.origin]),
    maxResponseBytes: 5 * 1024 * 1024,
    timeoutMs: 8_000,
  });
  const provider = new GithubProvider(http, {
    apiUrl: server.origin,
    cloneUrl: 'https://github.com',
    timing: {
      now: options.now ?? Date.now,
      random: () => 0.5,
      delay: async (ms) => {
        delays.push(ms);
      },
    },
  });
  return {
    provider,
    auth: { token: world.token, host: null },
    server,
    delays,
    close: async () => {
      await Promise.all([server.close(), storage.close()]);
      await http.close();
    },
  };
}

/** Opens harnesses at `NOW` and closes them after each test. Call it inside a `describe`. */
export function githubOpener(): (world: FakeWorld, options?: FakeGithubOptions) => Promise<GithubHarness> {
  const open: GithubHarness[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((harness) => harness.close()));
  });
  return async (world, options) => {
    const harness = await openGithub(world, { ...options, now: () => NOW });
    open.push(harness);
    return harness;
  };
}

/** A call at `NOW`. */
export function callWithin(remainingMs = 12_000): CallBounds {
  return { signal: new AbortController().signal, deadlineAt: NOW + remainingMs };
}

/** Whether a request asks for the document of that name. */
export function isQuery(name: string): (request: FakeRequest) => boolean {
  return ({ body }) => body.includes(`query ${name}`);
}

export function variablesOf(request: FakeRequest | undefined): unknown {
  return jsonAt(JSON.parse(request?.body ?? 'null'), 'variables');
}
