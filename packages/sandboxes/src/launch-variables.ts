import * as http from 'node:http';
import { networkInterfaces } from 'node:os';
import { rootCertificates } from 'node:tls';
import { CLUSTER_NAMES, destinationsOf, proxyExemptions } from '@slipway/common/http/address-rules.js';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import type { EgressAccess, SandboxLaunch } from './sandbox-backend.js';

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '::1'];
const PROXY_VARIABLES = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'];
/** What tells curl, git, Node.js and Python of stock images which file has the authorities that they trust. */
export const BUNDLE_VARIABLES = [
  'SSL_CERT_FILE',
  'NODE_EXTRA_CA_CERTS',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'GIT_SSL_CAINFO',
];
/** By which TLS is opened towards a program that is not ours; null: there is none, or our agent server sees to it itself. */
export function foreignAuthority({
  program,
  egress,
}: Pick<SandboxLaunch, 'program' | 'egress'>): string | null {
  return program.kind === 'native' ? null : (egress?.authority ?? null);
}

/** A file that has the well-known authorities and this one. */
export function authorityBundle(authority: string): string {
  return [...rootCertificates, authority, ''].join('\n');
}

/** Numbered like an operator's other authorities: our agent server trusts it, and has the programs of tools trust it. */
const EGRESS_AUTHORITY = 'SLIPWAY_AUTHORITY_1000';
/** Variables that our agent server passes on to tools, besides those it knows by name. */
export const TOOL_VARIABLES = 'SLIPWAY_TOOL_VARIABLES';
/** Variables that are not of the image, which cannot be inspected here: our agent server passes on all others. */
export const SERVICE_VARIABLES = 'SLIPWAY_SERVICE_VARIABLES';

/** A small young generation and WebAssembly without optimizing compilation save 10 MB each (docs/adr/0049). */
export const AGENT_SERVER_FLAGS = [
  '--max-semi-space-size=2',
  '--liftoff-only',
  '--v8-pool-size=1',
  '--expose-gc',
];

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
  const proxies = PROXY_VARIABLES.flatMap((name) => {
    const value = serviceEnvironment[name];
    return value && (sharesLoopback || !listensOnLoopback(value)) ? inBothCases(name, value) : [];
  });
  if (proxies.length === 0) {
    return {};
  }
  const configured = proxyExemptions(serviceEnvironment['NO_PROXY'] ?? '');
  const service = callbackUrl === null ? [] : [new URL(callbackUrl).hostname];
  const exempt = [...configured, ...LOOPBACK_HOSTS, ...CLUSTER_NAMES, ...service].map(spelled);
  // Only alone it means everything to curl, git and Python.
  const noProxy = exempt.includes('*') ? '*' : [...new Set(exempt)].join(',');
  const specified = new Set(Object.keys(env).map((name) => name.toLowerCase()));
  const variables = [...proxies, ...inBothCases('NO_PROXY', noProxy), ['NODE_USE_ENV_PROXY', '1'] as const];
  return Object.fromEntries(variables.filter(([name]) => !specified.has(name.toLowerCase())));
}

/** The proxies of the operator, which reach more than a sandbox may. */
export function proxyDestinations(
  serviceEnvironment: Readonly<Record<string, string | undefined>>,
): string[] {
  return PROXY_VARIABLES.flatMap((name) => destinationsOf(serviceEnvironment[name] ?? ''));
}

/** Has our agent server use proxies from its first request on, since `NODE_USE_ENV_PROXY` delays the start of Node.js. */
const LATE_PROXY = 'SLIPWAY_LATE_PROXY';

/**
 * Returns the variables by which programs of a sandbox use its own proxy; our agent server runs on the service's Node.js.
 * @param host where the sandbox finds the proxy
 */
export function egressVariables(
  { id, program }: Pick<SandboxLaunch, 'id' | 'program'>,
  { port, credential, authority }: EgressAccess,
  host: string,
): Record<string, string> {
  const proxy = `http://${id}:${credential}@${host}:${port}`;
  const exempt = [...LOOPBACK_HOSTS, '127.0.0.0/8'].join(',');
  const variables = [
    ...PROXY_VARIABLES.flatMap((name) => inBothCases(name, proxy)),
    ...inBothCases('NO_PROXY', exempt),
  ];
  const isLate = program.kind === 'native' && Object.hasOwn(http, 'setGlobalProxyFromEnv');
  return {
    ...Object.fromEntries(variables),
    [isLate ? LATE_PROXY : 'NODE_USE_ENV_PROXY']: '1',
    ...(authority !== null && { [EGRESS_AUTHORITY]: authority }),
  };
}

/** Some programs read only one of them: wget and apt the lower case, others the upper. */
function inBothCases(name: string, value: string): [string, string][] {
  return [
    [name, value],
    [name.toLowerCase(), value],
  ];
}

/**
 * Python knows no `*.suffix`. An address of IPv6 has no brackets, which the `fetch` of Node.js wants (`exemptIfInRange`): httpx,
 * which SDKs of models use, makes no request at all where one has them.
 */
function spelled(exemption: string): string {
  const [, address] = /^\[(.*)\]$/.exec(exemption) ?? [];
  return address ?? exemption.replace(/^\*(?=\.)/, '');
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

/** Returns this machine's addresses in its networks. Node.js does not list bridges without connections. */
export function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address);
}
