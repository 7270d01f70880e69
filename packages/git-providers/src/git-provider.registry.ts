import type { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import type { KeycloakOptions } from './enterprise-sso/enterprise-sso.client.js';
import {
  GitProviderError,
  type GitProvider,
  type GitServerKind,
  PROVIDER_TYPES,
  type ProviderType,
} from './git-provider.js';
import { GIT_SERVERS, gitServerFor } from './git-servers.js';
import { type RetryTiming, SYSTEM_RETRY_TIMING } from './provider-http.js';
import type { GitServerAddresses, PublicGitServerName } from './public-git-servers.js';

type LoadAdapter = () => Promise<GitProvider>;

export interface GitProviderAdapters {
  servers: Readonly<Record<GitServerKind, LoadAdapter>>;
  enterpriseSso: LoadAdapter | null;
}

/** Knows which adapter a stored credential needs. */
export class GitProviderRegistry {
  readonly usable: readonly ProviderType[];

  constructor(private readonly adapters: GitProviderAdapters) {
    this.usable = PROVIDER_TYPES.filter((provider) => this.find(provider, null) !== null);
  }

  /** `host` is canonical, or null. @throws GitProviderError `unsupported` for enterprise_sso without configuration */
  async providerFor(provider: ProviderType, host: string | null): Promise<GitProvider> {
    const load = this.find(provider, host);
    if (!load) {
      throw new GitProviderError('unsupported');
    }
    return await load();
  }

  private find(provider: ProviderType, host: string | null): LoadAdapter | null {
    const { servers, enterpriseSso } = this.adapters;
    if (provider === 'enterprise_sso') {
      return enterpriseSso;
    }
    const server = gitServerFor(provider, host);
    return server && servers[server.kind];
  }
}

export interface GitProviderOptions {
  servers: Readonly<Record<PublicGitServerName, GitServerAddresses>>;
  enterpriseSso: (KeycloakOptions & { kind: GitServerKind }) | null;
  /** The canonical host behind it; null means the default address of its kind. */
  ssoHost: string | null;
  /** Epoch milliseconds. */
  now: () => number;
}

/** Each adapter is loaded with the first call that needs it. */
export function createGitProviderRegistry(
  http: GuardedHttpClient,
  { servers: addresses, enterpriseSso: sso, ssoHost, now }: GitProviderOptions,
): GitProviderRegistry {
  const timing: RetryTiming = { ...SYSTEM_RETRY_TIMING, now };
  const servers = Object.fromEntries(
    Object.values(GIT_SERVERS).map(({ kind, provider, load }) => [
      kind,
      once(async () => new (await load())(http, { ...addresses[provider], timing })),
    ]),
  ) as GitProviderAdapters['servers'];
  const enterpriseSso =
    sso &&
    once(async () => {
      const { EnterpriseSsoProvider } = await import('./enterprise-sso/enterprise-sso.provider.js');
      return new EnterpriseSsoProvider(http, await servers[sso.kind](), { ...sso, host: ssoHost, timing });
    });
  return new GitProviderRegistry({ servers, enterpriseSso });
}

function once(load: LoadAdapter): LoadAdapter {
  let loaded: Promise<GitProvider> | undefined;
  return () => (loaded ??= load());
}
