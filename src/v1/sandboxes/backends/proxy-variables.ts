const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
const PROXY = /^(HTTPS?|ALL)_PROXY$/i;

/**
 * Variables by which the programs of a sandbox use the operator's proxy, ours too: Node.js looks at them from 22.21 and
 * 24.5 on (https://nodejs.org/api/cli.html#node_use_env_proxy1). None where there is no proxy. What the sandbox itself
 * holds and the service, which it calls back, are exempt: a proxy reaches neither.
 *
 * @param own the service's variables
 * @param isSameMachine whether a proxy that listens on this machine's loopback can be reached from the sandbox
 */
export function proxyVariables(
  own: Readonly<Record<string, string | undefined>>,
  callbackUrl: string | null,
  isSameMachine: boolean,
): Record<string, string> {
  const proxies = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined && PROXY.test(name) && (isSameMachine || !isLoopback(value))
      ? [[name, value] as const]
      : [],
  );
  if (proxies.length === 0) {
    return {};
  }
  const exempt = [
    own['no_proxy'] ?? own['NO_PROXY'] ?? '',
    ...LOOPBACK,
    callbackUrl === null ? '' : new URL(callbackUrl).hostname,
  ];
  const noProxy = [...new Set(exempt.filter((entry) => entry !== ''))].join(',');
  return { ...Object.fromEntries(proxies), NO_PROXY: noProxy, no_proxy: noProxy, NODE_USE_ENV_PROXY: '1' };
}

/** Proxies may be given as `host:port`. */
function isLoopback(proxy: string): boolean {
  const url = URL.parse(proxy.includes('://') ? proxy : `http://${proxy}`);
  const host = url?.hostname.replaceAll(/[[\]]/g, '') ?? '';
  return LOOPBACK.includes(host) || host.startsWith('127.');
}
