import type { SandboxLaunch } from './sandbox-backend.js';

const LOOPBACK = ['localhost', '127.0.0.1', '::1'];
const PROXY = /^(HTTPS?|ALL)_PROXY$/i;

/**
 * Variables by which the programs of a sandbox use the operator's proxy, ours too: Node.js looks at them from 22.21 and
 * 24.5 on (https://nodejs.org/api/cli.html#node_use_env_proxy1). None where there is no proxy. What the sandbox itself
 * holds and the service, which it calls back, are exempt: a proxy reaches neither. What the specification names, in
 * whichever case, is left to it.
 *
 * @param own the service's variables
 * @param isSameMachine whether a proxy that listens on this machine's loopback can be reached from the sandbox
 */
export function proxyVariables(
  own: Readonly<Record<string, string | undefined>>,
  { env, callbackUrl }: Pick<SandboxLaunch, 'env' | 'callbackUrl'>,
  isSameMachine: boolean,
): Record<string, string> {
  const proxies = Object.entries(own).flatMap(([name, value]) =>
    value && PROXY.test(name) && (isSameMachine || !isLoopback(value)) ? [[name, value] as const] : [],
  );
  if (proxies.length === 0) {
    return {};
  }
  const exempt = [
    own['no_proxy'],
    own['NO_PROXY'],
    ...LOOPBACK,
    callbackUrl === null ? null : new URL(callbackUrl).hostname,
  ];
  const noProxy = [...new Set(exempt.filter(Boolean))].join(',');
  const specified = new Set(Object.keys(env).map((name) => name.toLowerCase()));
  const variables = [
    ...proxies,
    ['NO_PROXY', noProxy] as const,
    ['no_proxy', noProxy] as const,
    ['NODE_USE_ENV_PROXY', '1'] as const,
  ];
  return Object.fromEntries(variables.filter(([name]) => !specified.has(name.toLowerCase())));
}

/** Proxies may be given as `host:port`. */
function isLoopback(proxy: string): boolean {
  const url = URL.parse(proxy.includes('://') ? proxy : `http://${proxy}`);
  const host = url?.hostname.replaceAll(/[[\]]/g, '') ?? '';
  return LOOPBACK.includes(host) || host.startsWith('127.');
}
