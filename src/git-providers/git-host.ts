import type { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { PUBLIC_GIT_SERVERS } from '../config/git-config.js';
import type { ProviderType } from './git-provider.js';

/** What a user's `host` means: a canonical host, null for the provider's own service, or nothing that may be called. */
export type ParsedGitHost = { host: string | null } | 'refused';

/** GitLab can live under a relative root, Bitbucket Data Center under a context path; GitHub always at the root. */
const TAKES_PATH: ReadonlySet<ProviderType> = new Set(['gitlab', 'bitbucket']);

const MAX_INPUT_LENGTH = 255;

/** Scheme, authority and path of the input as typed, before the URL parser tidies it up. */
const INPUT = /^(?:(https?):\/\/)?([^/]+)(\/.*)?$/i;

/** What a parsed host may look like: labels, or a bracketed IPv6 literal. */
const HOST_NAME = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/;

/**
 * Reads a user's `host` (hostile input). Blank means the provider's own service, as does its canonical name in
 * any spelling; anything else must be allowlisted by the operator, which also covers local names and IP
 * literals in every notation. The canonical form has a lower-case punycode name, a port only if it is not
 * the default, a path without trailing slash, and a scheme only if that is http:
 * `gitlab.example.com`, `git.example.com:8443/context`, `http://127.0.0.1:9101`.
 *
 * One value stands for every kind of refusal, so that a response made from it cannot tell them apart.
 */
export function parseGitHost(input: string, provider: ProviderType, allowlist: HostAllowlist): ParsedGitHost {
  const text = input.trim();
  if (text === '') {
    return { host: null };
  }
  const url = provider === 'enterprise_sso' ? null : intendedUrl(text, allowlist);
  if (!url) {
    return 'refused';
  }
  const path = url.pathname.replace(/\/$/, '');
  const service = Object.entries(PUBLIC_GIT_SERVERS).find(([, { host }]) => host === url.host);
  if (service !== undefined) {
    const [owner] = service;
    return owner === provider && url.protocol === 'https:' && path === '' ? { host: null } : 'refused';
  }
  if (!allowlist.allows(url) || (path !== '' && !TAKES_PATH.has(provider))) {
    return 'refused';
  }
  return { host: `${url.protocol === 'http:' ? 'http://' : ''}${url.host}${path}` };
}

/** Address below which a canonical host is called: `https://gitlab.example.com`, no trailing slash. */
export function gitHostBaseUrl(host: string): string {
  return host.startsWith('http://') ? host : `https://${host}`;
}

/** Without a scheme https is meant, unless the operator lists the host as http only. */
function intendedUrl(text: string, allowlist: HostAllowlist): URL | null {
  const url = parseUrl(text);
  if (!url || text.includes('://') || allowlist.allows(url)) {
    return url;
  }
  const plain = parseUrl(`http://${text}`);
  return plain && allowlist.allows(plain) ? plain : url;
}

/** The address, or null if the input is not exactly a scheme, a host, a port and a plain path. */
function parseUrl(text: string): URL | null {
  const [, scheme = 'https', authority = '', path = ''] = INPUT.exec(text) ?? [];
  // The URL parser would drop tabs and line breaks, decode percent signs, and read backslashes as slashes.
  if (text.length > MAX_INPUT_LENGTH || /[\s\p{Cc}\\@?#%]/u.test(authority) || !isPlainPath(path)) {
    return null;
  }
  const address = `${scheme}://${authority}${path}`;
  if (!URL.canParse(address)) {
    return null;
  }
  const url = new URL(address);
  url.hostname = url.hostname.replace(/\.$/, '');
  return HOST_NAME.test(url.hostname) ? url : null;
}

/** Judged as typed: the URL parser has already resolved dot segments in its own `pathname`. */
function isPlainPath(path: string): boolean {
  if (path === '' || path === '/') {
    return true;
  }
  const segments = path.slice(1).replace(/\/$/, '').split('/');
  return segments.every((segment) => /^[A-Za-z0-9._~-]+$/.test(segment) && !/^\.+$/.test(segment));
}
