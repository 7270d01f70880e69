import { isLoopbackHost } from '@slipway/common/http/loopback.js';
import type { SandboxLaunch } from './sandbox-backend.js';

/** The form of entries in `NO_PROXY`. */
const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '::1'];
const PROXY_VARIABLE = /^(HTTPS?|ALL)_PROXY$/i;
/** Variables that our agent server passes on to tools, besides those it knows by name. */
export const TOOL_VARIABLES = 'SLIPWAY_TOOL_VARIABLES';
/** Variables that are not of the image, which cannot be inspected here: our agent server passes on all others. */
export const SERVICE_VARIABLES = 'SLIPWAY_SERVICE_VARIABLES';

/** A small young generation and WebAssembly without optimizing compilation save 10 MB each (docs/adr/0049). */
export const AGENT_SERVER_FLAGS = ['--max-semi-space-size=2', '--liftoff-only', '--v8-pool-size=1'];

/**
 * Programs use the operator's proxy (https://nodejs.org/api/cli.html#node_use_env_proxy1), except for loopback and
 * the service, which it does not reach. Variables of the specification stay.
 * @param sharesLoopback whether the sandbox can reach a proxy on this machine's loopback
 */
export function proxyVariables(
  serviceEnvironment: Readonly<Record<string, string | undefined>>,
  { env, callbackUrl }: Pick<SandboxLaunch, 'env' | 'callbackUrl'>,
  sharesLoopback: boolean,
): Record<string, string> {
  const proxies = Object.entries(serviceEnvironment).flatMap(([name, value]) =>
    value && PROXY_VARIABLE.test(name) && (sharesLoopback || !listensOnLoopback(value))
      ? [[name, value] as const]
      : [],
  );
  if (proxies.length === 0) {
    return {};
  }
  const exempt = [
    serviceEnvironment['no_proxy'],
    serviceEnvironment['NO_PROXY'],
    ...LOOPBACK_HOSTS,
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

function listensOnLoopback(proxy: string): boolean {
  const url = URL.parse(proxy.includes('://') ? proxy : `http://${proxy}`);
  return url !== null && isLoopbackHost(url.hostname);
}

/** Variables with the ports (by name) that programs may use. `host` is where they must listen to be reachable. */
export function portVariables(ports: Readonly<Record<string, number>>, host: string): Record<string, string> {
  const variables = Object.entries(ports).map(([name, port]) => [name, String(port)] as const);
  if (variables.length === 0) {
    return {};
  }
  const named = { ...Object.fromEntries(variables), LISTEN_HOST: host };
  return { ...named, [TOOL_VARIABLES]: Object.keys(named).join(',') };
}
