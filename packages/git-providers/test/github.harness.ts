import { jsonAt } from '@slipway/common/json-access.js';
import { GithubProvider } from '../src/github/github.provider.js';
import {
  type FakeGithubOptions,
  startFakeGithub,
  startFakeGithubStorage,
} from '../../../test/fakes/fake-github.js';
import type { FakeRequest } from '../../../test/fakes/fake-server.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { type GitProviderHarness, harnessOf, harnessOpener, type Opened } from './git-provider.harness.js';

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
  const timing = {
    now: options.now ?? Date.now,
    random: () => 0.5,
    delay: async (ms: number) => {
      delays.push(ms);
    },
  };
  const auth = { token: world.token, host: null };
  const harness = harnessOf(
    [server, storage],
    auth,
    (http) => new GithubProvider(http, { apiUrl: server.origin, cloneUrl: 'https://github.com', timing }),
  );
  return { ...harness, delays };
}

/** Opens harnesses, and makes calls, at `NOW`. Call it inside a `describe`. */
export function githubOpener() {
  const open = harnessOpener((world, options: FakeGithubOptions = {}) =>
    openGithub(world, { ...options, now: () => NOW }),
  );
  return async (world?: FakeWorld, options?: FakeGithubOptions): Promise<GithubHarness & Opened> => {
    const harness = await open(world, options);
    return { ...harness, call: { ...harness.call, deadlineAt: NOW + 60_000 } };
  };
}

/** Whether a request asks for the document of that name. */
export function isQuery(name: string): (request: FakeRequest) => boolean {
  return ({ body }) => body.includes(`query ${name}`);
}

export function variablesOf(request: FakeRequest | undefined): unknown {
  return jsonAt(JSON.parse(request?.body ?? 'null'), 'variables');
}
