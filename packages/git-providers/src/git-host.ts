import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { PUBLIC_GIT_SERVERS } from './public-git-servers.js';
import type { ProviderType } from './git-provider.js';
import { gitServerFor } from './git-servers.js';

export type ParsedGitHost = { host: string | null } | 'refused';

const MAX_INPUT_LENGTH = 255;

/** The input as typed, before the URL parser tidies it up. */
const INPUT = /^(?:(https?):\/\/)?([^/]+)(\/.*)?$/i;

const HOST_NAME = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])$/;

/**
 * Reads a user's `host` (hostile input). Blank means the provider's own service; other hosts must be in the
 * allowlist. The canonical form is lower-case punycode without default port, trailing slash and `https://`. All
 * refusals are the same value, so that a response tells nothing about what is behind a host.
 */
export function parseGitHost(input: string, provider: ProviderType, allowlist: HostAllowlist): ParsedGitHost {
  const text = input.trim();
  if (text === '') {
    return { host: null };
  }
  const url = intendedUrl(text, allowlist);
  if (!url) {
    return 'refused';
  }
  const path = url.pathname.replace(/\/$/, '');
  const service = Object.entries(PUBLIC_GIT_SERVERS).find(([, { host }]) => host === url.host);
  if (service !== undefined) {
    const [owner] = service;
    return owner === provider && url.protocol === 'https:' && path === '' ? { host: null } : 'refused';
  }
  const server = gitServerFor(provider, url.host);
  if (!server || !allowlist.allows(url) || (path !== '' && server.ownHosts !== 'path')) {
    return 'refused';
  }
  return { host: `${url.protocol === 'http:' ? 'http://' : ''}${url.host}${path}` };
}

/** Https unless the operator lists the host as http only. */
function intendedUrl(text: string, allowlist: HostAllowlist): URL | null {
  const url = parseUrl(text);
  if (!url || text.includes('://') || allowlist.allows(url)) {
    return url;
  }
  const plain = parseUrl(`http://${text}`);
  return plain && allowlist.allows(plain) ? plain : url;
}

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

/** Judges the typed text: the URL parser has already resolved dot segments in its own `pathname`. */
function isPlainPath(path: string): boolean {
  if (path === '' || path === '/') {
    return true;
  }
  const segments = path.slice(1).replace(/\/$/, '').split('/');
  return segments.every((segment) => /^[A-Za-z0-9._~-]+$/.test(segment) && !/^\.+$/.test(segment));
}
