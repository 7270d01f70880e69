import { errorMessage } from '@slipway/common/errors/error-message.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { parseGitHost } from '@slipway/git-providers/git-host.js';
import type { GitProviderOptions } from '@slipway/git-providers/git-provider.registry.js';
import { GIT_SERVERS } from '@slipway/git-providers/git-servers.js';
import type { Clock } from '@slipway/common/clock.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import type { EnterpriseSsoConfig, GitConfig } from '../config/git-config.js';

export interface OperatorHosts {
  allowlist: HostAllowlist;
  /** The canonical host behind enterprise_sso; null means the default address of its kind. */
  ssoHost: string | null;
}

/** Reads the hosts that the operator trusts. @throws ConfigError one line that names the variable */
export function operatorHosts(config: GitConfig): OperatorHosts {
  requireAllowlist(config.hostAllowlist);
  const sso = config.enterpriseSso;
  const addresses = Object.values(config.servers).map(({ apiUrl }) => apiUrl);
  if (sso) {
    addresses.push(sso.issuer, ...(sso.host === null ? [] : [ssoAddress(sso.host)]));
  }
  const allowlist = HostAllowlist.parse([
    ...config.hostAllowlist,
    ...addresses.map((address) => new URL(address).origin),
  ]);
  return { allowlist, ssoHost: sso ? canonicalSsoHost(sso, allowlist) : null };
}

function requireAllowlist(entries: readonly string[]): void {
  try {
    HostAllowlist.parse(entries);
  } catch (error) {
    throw new ConfigError(`GIT_HOST_ALLOWLIST: ${errorMessage(error)}`);
  }
}

function ssoAddress(host: string): string {
  const address = host.includes('://') ? host : `https://${host}`;
  if (!URL.canParse(address) || !/^https?:/.test(address)) {
    throw badSsoHost();
  }
  return address;
}

function canonicalSsoHost(sso: EnterpriseSsoConfig, allowlist: HostAllowlist): string | null {
  const { provider, isPublic } = GIT_SERVERS[sso.kind];
  const parsed = parseGitHost(sso.host ?? '', provider, allowlist);
  if (parsed === 'refused' || (parsed.host === null && !isPublic)) {
    throw badSsoHost();
  }
  return parsed.host;
}

function badSsoHost(): ConfigError {
  return new ConfigError(
    'ENTERPRISE_SSO_HOST: must be the host of the git server, such as git.example.com or git.example.com/context',
  );
}

/** What the adapters take of the configuration. @throws ConfigError as {@link operatorHosts} */
export function gitProviderOptions(config: GitConfig, clock: Clock): GitProviderOptions {
  const { servers, enterpriseSso } = config;
  return { servers, enterpriseSso, ssoHost: operatorHosts(config).ssoHost, now: () => clock.now() };
}
