import { errorMessage } from '@slipway/common/errors/error-message.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import type { EnterpriseSsoConfig, GitConfig } from '../config/git-config.js';
import { ConfigError } from '../config/config.error.js';
import { parseGitHost } from './git-host.js';
import type { ProviderType } from './git-provider.js';

/** The hosts in the operator's configuration. */
export interface OperatorHosts {
  /** `GIT_HOST_ALLOWLIST` and every address that the operator configured. */
  allowlist: HostAllowlist;
  /** Canonical host behind enterprise_sso; null for the default address of its kind. */
  ssoHost: string | null;
}

/** Whose rules the host behind enterprise_sso follows. */
const PROVIDER_OF_KIND: Record<EnterpriseSsoConfig['kind'], ProviderType> = {
  github: 'github',
  gitlab: 'gitlab',
  bitbucket_dc: 'bitbucket',
};

/**
 * Reads the hosts that the operator trusts.
 *
 * @throws ConfigError one line that names the variable
 */
export function operatorHosts(config: GitConfig): OperatorHosts {
  requireAllowlist(config.hostAllowlist);
  const sso = config.enterpriseSso;
  const addresses = [config.githubApiUrl, config.gitlabApiUrl, config.bitbucketApiUrl];
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
  const parsed = parseGitHost(sso.host ?? '', PROVIDER_OF_KIND[sso.kind], allowlist);
  if (parsed === 'refused' || (sso.kind === 'bitbucket_dc' && parsed.host === null)) {
    throw badSsoHost();
  }
  return parsed.host;
}

function badSsoHost(): ConfigError {
  return new ConfigError(
    'ENTERPRISE_SSO_HOST: must be the host of the git server, such as git.example.com or git.example.com/context',
  );
}
