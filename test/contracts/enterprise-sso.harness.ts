import { afterEach } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { GuardedHttpClient } from '../../src/common/http/guarded-http.client.js';
import { EnterpriseSsoProvider } from '../../src/git-providers/enterprise-sso/enterprise-sso.provider.js';
import { GitlabProvider } from '../../src/git-providers/gitlab/gitlab.provider.js';
import { startFakeGitlab } from '../fakes/fake-gitlab.js';
import { type FakeRealm, sampleRealm, startFakeKeycloak } from '../fakes/fake-keycloak.js';
import type { FakeServer } from '../fakes/fake-server.js';
import type { FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';
import type { GitProviderHarness } from './git-provider.harness.js';

export interface SsoHarness extends GitProviderHarness {
  keycloak: FakeServer;
  realm: FakeRealm;
  world: FakeWorld;
}

export interface SsoOptions {
  realm?: Partial<FakeRealm>;
  apiVersion?: 'v1' | 'v2';
  /** Stored value; the realm's first access token by default. */
  stored?: string;
  clientId?: string;
  clientSecret?: string;
  now?: () => number;
  gate?: () => Promise<void>;
}

/** The adapter behind a fake Keycloak, in front of a fake GitLab that accepts the world's token. */
export async function openSso(world: FakeWorld, options: SsoOptions = {}): Promise<SsoHarness> {
  const realm = { ...sampleRealm(world.token), ...options.realm };
  const [server, keycloak] = await Promise.all([startFakeGitlab(world), startFakeKeycloak(realm, options)]);
  const http = new GuardedHttpClient({
    allowlist: HostAllowlist.parse([server.origin, keycloak.origin]),
    maxResponseBytes: 5 * 1024 * 1024,
    timeoutMs: 8_000,
  });
  const now = options.now ?? Date.now;
  const timing = { delay: () => Promise.resolve(), random: () => 0, now };
  const provider = new EnterpriseSsoProvider(
    http,
    new GitlabProvider(http, {
      apiUrl: 'https://gitlab.example/api',
      cloneUrl: 'https://gitlab.example',
      timing,
    }),
    {
      issuer: `${keycloak.origin}/realms/main`,
      alias: realm.alias,
      host: server.origin,
      clientId: options.clientId ?? realm.clientId,
      clientSecret: options.clientSecret ?? realm.clientSecret,
      apiVersion: options.apiVersion ?? 'v1',
      timing,
    },
  );
  return {
    provider,
    auth: { token: options.stored ?? realm.accessTokens[0] ?? '', host: null },
    server,
    keycloak,
    realm,
    world,
    close: async () => {
      await Promise.all([server.close(), keycloak.close()]);
      await http.close();
    },
  };
}

/** Opens harnesses over the sample world and closes them after each test. Call it inside a `describe`. */
export function ssoOpener(): (options?: SsoOptions) => Promise<SsoHarness> {
  const open: SsoHarness[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((harness) => harness.close()));
  });
  return async (options = {}) => {
    const harness = await openSso(sampleWorld(), options);
    open.push(harness);
    return harness;
  };
}
