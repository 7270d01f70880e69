/**
 * Whether `NO_PROXY` exempts an address. Entries are separated by commas or blanks: `*`, a domain (itself and
 * every name below it), `.domain` or `*.domain` (names below it only), each optionally with `:port`. This is
 * how curl and Go read it (https://pkg.go.dev/golang.org/x/net/http/httpproxy), without address ranges.
 */
export function bypassesProxy(url: URL, noProxy: string): boolean {
  const host = url.hostname.replace(/\.$/, '');
  const port = url.port === '' ? (url.protocol === 'http:' ? '80' : '443') : url.port;
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => matches(entry, host, port));
}

function matches(entry: string, host: string, port: string): boolean {
  if (entry === '*') {
    return true;
  }
  const withPort = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(entry);
  const name = withPort?.[1] ?? entry;
  if (withPort && withPort[2] !== port) {
    return false;
  }
  const suffix = name.replace(/^\*?\./, '');
  const belowOnly = suffix !== name;
  return host.endsWith(`.${suffix}`) || (!belowOnly && (host === suffix || host === `[${suffix}]`));
}
