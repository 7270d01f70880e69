import { afterEach } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { GuardedHttpClient, type GuardedHttpOptions } from '@slipway/common/http/guarded-http.client.js';
import {
  type GitProvider,
  GitProviderError,
  type GitCredential,
  type ProviderAuth,
  type CallBounds,
  type ProviderCall,
  type ProviderErrorCode,
  type ProviderUser,
} from '../src/git-provider.js';
import type { RetryTiming } from '../src/provider-http.js';
import { type FakeRequest, FakeServer } from '../../../test/fakes/fake-server.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';

/** An adapter in front of the fake host it talks to. */
export interface GitProviderHarness {
  provider: GitProvider;
  /** What the fake accepts. */
  auth: ProviderAuth;
  server: FakeServer;
  close(): Promise<void>;
}

/** Builds the adapter over a world. Its retries must not wait, and its address check must allow the fake. */
export type GitProviderSetUp = (world: FakeWorld) => Promise<GitProviderHarness>;

/** What a host can know at all. */
export interface GitProviderCapabilities {
  issues: boolean;
  /** Tells when a repository was last active. */
  repositoryTimes: boolean;
  /** Tells archived repositories from others. */
  archives: boolean;
  forks: boolean;
  forking: {
    /** Where the user's own are. */
    owner: string;
    /** Where the repository keeps the commits of a change request. */
    ref: (number: number) => string | null;
    /** A change request may let those push who may push to its repository. */
    maintainers: boolean;
  };
  mirrors: boolean;
  /** Change requests read at most; more of them make the answer `truncated`. */
  maxChangeRequests: number;
  /** Value of the `authorization` header that a token is sent in. */
  authorization: (token: string) => string;
  /** What the lists that people choose from tell. */
  lists: {
    /** Of the sample world, with an app installed for `octo` where there are apps. */
    installations: string[];
    /** The one that narrows the repositories down to those of `octo`; null where there are none. */
    octo: string | null;
    stars: boolean;
    defaultBranches: boolean;
    branchTimes: boolean;
    protection: boolean;
  };
  /**
   * Where git finds `octo/app` (the fake is at `origin`), what it authenticates with beside the user's token, and the
   * token of the API where that is another one.
   */
  clone: {
    url: (origin: string) => string;
    credential: Partial<GitCredential>;
    bearer?: (origin: string) => string;
    token?: string;
  };
  /** What the host tells of followed change requests. */
  follow: {
    /** Digits of a commit. */
    shaLength: number;
    /** Tells who may write to a repository. */
    mayWrite: boolean;
    /** Keeps logs. */
    logs: boolean;
    /** Knows checks of other services, and has no logs of them. */
    statuses: boolean;
    /** Why a response without a change request is refused, unless that is `unavailable`. */
    misfit?: ProviderErrorCode;
    /** Does not tell whether threads beyond those that were read are open. */
    doubtsThreads?: boolean;
    /** To read twelve at a time. */
    requestsForTwelve: number;
  };
  /** What a rejected token fails with; `unauthorized` unless the user's token is not the one the host sees. */
  rejection?: ProviderErrorCode;
  /** Members of the account in which the host differs from the world's user. */
  user?: Partial<ProviderUser>;
  /** For hosts with page addresses in their answers: which requests get a page, and one that names a next page. */
  pages?: { match: (request: FakeRequest) => boolean; body: (nextPage: string) => unknown };
}

/** What a test has of a harness, beside the harness. */
export interface Opened {
  world: FakeWorld;
  /** With the token that the fake accepts, in bounds that no healthy call reaches. */
  call: ProviderCall;
  /** The same with another token. */
  otherCall: ProviderCall;
}

/** Opens harnesses and closes them after each test. Call it inside a `describe`. */
export function harnessOpener<T extends GitProviderHarness, O = object>(
  setUp: (world: FakeWorld, options?: O) => Promise<T>,
): (world?: FakeWorld, options?: O) => Promise<T & Opened> {
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((harness) => harness.close()));
  });
  return async (world = sampleWorld(), options) => {
    const harness = await setUp(world, options);
    open.push(harness);
    const call = { ...harness.auth, ...relaxedCall() };
    return { ...harness, world, call, otherCall: { ...call, token: `${call.token}x` } };
  };
}

/** Waits for no retry. */
export const AT_ONCE: RetryTiming = {
  now: () => Date.now(),
  random: () => 0,
  delay: () => Promise.resolve(),
};

/** An adapter in front of fakes: the first is its host, and it may ask them all. */
export function harnessOf<T extends GitProvider>(
  [server, ...others]: [FakeServer, ...FakeServer[]],
  auth: ProviderAuth,
  adapterOf: (http: GuardedHttpClient) => T,
): GitProviderHarness & { provider: T } {
  const servers = [server, ...others];
  const http = new GuardedHttpClient(clientOptions(...servers));
  return {
    provider: adapterOf(http),
    auth,
    server,
    close: async () => {
      await Promise.all(servers.map((each) => each.close()));
      await http.close();
    },
  };
}

export function clientOptions(...servers: FakeServer[]): GuardedHttpOptions {
  return {
    allowlist: HostAllowlist.parse(servers.map(({ origin }) => origin)),
    maxResponseBytes: 2 * 1_048_576,
    timeoutMs: 60_000,
  };
}

/** Opens servers that answer anything, and closes them after each test. Call it inside a `describe`. */
export function foreignServerOpener(): () => Promise<FakeServer> {
  const open: FakeServer[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((server) => server.close()));
  });
  return async () => {
    const server = await FakeServer.start(() => ({ body: {} }));
    open.push(server);
    return server;
  };
}

/** Bounds that no healthy call reaches. */
export function relaxedCall(signal: AbortSignal = new AbortController().signal): CallBounds {
  return { signal, deadlineAt: Date.now() + 60_000 };
}

/** The error of a call that must fail with a `GitProviderError`. */
export async function failureOf(work: Promise<unknown>): Promise<GitProviderError> {
  let value: unknown;
  try {
    value = await work;
  } catch (error) {
    if (error instanceof GitProviderError) {
      return error;
    }
    throw error;
  }
  throw new Error(`expected a GitProviderError, got ${JSON.stringify(value)}`);
}
