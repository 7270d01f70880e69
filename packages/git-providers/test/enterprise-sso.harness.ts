import { EnterpriseSsoProvider } from '../src/enterprise-sso/enterprise-sso.provider.js';
import { GitlabProvider } from '../src/gitlab/gitlab.provider.js';
import { startFakeGitlab } from '../../../test/fakes/fake-gitlab.js';
import { type FakeRealm, sampleRealm, startFakeKeycloak } from '../../../test/fakes/fake-keycloak.js';
import type { FakeServer } from '../../../test/fakes/fake-server.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import {
  AT_ONCE,
  type GitProviderHarness,
  harnessOf,
  harnessOpener,
  type Opened,
} from './git-provider.harness.js';

export interface SsoHarness extends GitProviderHarness {
  keycloak: FakeServer;
  realm: FakeRealm;
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
  const timing = { ...AT_ONCE, now: options.now ?? Date.now };
  const urls = { apiUrl: 'https://gitlab.example/api', cloneUrl: 'https://gitlab.example', timing };
  const auth = { token: options.stored ?? realm.accessTokens[0] ?? '', host: null };
  const harness = harnessOf(
    [server, keycloak],
    auth,
    (http) =>
      new EnterpriseSsoProvider(http, new GitlabProvider(http, urls), {
        issuer: `${keycloak.origin}/realms/main`,
        alias: realm.alias,
        host: server.origin,
        clientId: options.clientId ?? realm.clientId,
        clientSecret: options.clientSecret ?? realm.clientSecret,
        apiVersion: options.apiVersion ?? 'v1',
        timing,
      }),
  );
  return { ...harness, keycloak, realm };
}

/** Opens harnesses over the sample world and closes them after each test. Call it inside a `describe`. */
export function ssoOpener(): (options?: SsoOptions) => Promise<SsoHarness & Opened> {
  const open = harnessOpener(openSso);
  return (options) => open(undefined, options);
}
