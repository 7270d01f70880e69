import { hash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { AgentEngine, EngineContext, EngineServerOptions } from './engine/agent-engine.js';
import {
  DEFAULT_LIMITS,
  numberedVariables,
  parseOptions,
  readSessionKey,
  takeSessionKeys,
} from './command-line.js';
import { nameCommitter } from './git/default-committer.js';
import { log } from './observability.js';
import { nameWorkspace, CERTIFICATE_VARIABLES, toolEnvironment } from './tool-view.js';
import { listenUnassigned } from './start-agent-server.js';

const STOP = Symbol('stop');

type EngineFactory = (context: EngineContext, server: EngineServerOptions) => Promise<AgentEngine>;

export async function runAgentServer(createEngine: EngineFactory): Promise<void> {
  // The log is on the disk that its tools fill.
  process.stderr.on('error', () => undefined);
  const stopping = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]).then(
    (): typeof STOP => STOP,
  );
  const parsed = parseOptions(process.argv.slice(2), process.env, process.cwd());
  const { secretsOnStdin, workspaceName, ...unnamed } = parsed;
  const network = ownNetwork(process.env);
  globalThis.fetch = network.wrap(globalThis.fetch);
  const fromEnvironment = takeSessionKeys(process.env);
  const [server, sessionKeys] = await Promise.all([
    listenUnassigned(unnamed, network.prepare),
    // A warm sandbox waits for its key for hours, or is stopped without one.
    secretsOnStdin
      ? Promise.race([readSessionKey(process.stdin).then((key) => [key]), stopping])
      : fromEnvironment,
    makeHome(process.env['HOME']).then(() => writeAuthorities(process.env)),
  ]);
  if (sessionKeys === STOP) {
    process.stdin.destroy();
    await server.stop();
    return;
  }
  const options = {
    ...unnamed,
    ...(workspaceName && (await nameWorkspace(unnamed.workspace, workspaceName))),
    sessionKeys,
    environment: toolEnvironment(process.env),
  };
  await server.assign({
    ...DEFAULT_LIMITS,
    ...options,
    createEngine: (context) => createEngine(context, options),
  });
  log('info', 'agent server started', {
    ...(server.port === null ? { socket: options.socket } : { host: options.host, port: server.port }),
    started_in_ms: Math.round(process.uptime() * 1000),
  });
  // Beside the first requests, which wait for no commit.
  void nameCommitter({ environment: options.environment, wrapper: options.toolWrapper });
  await stopping;
  log('info', 'agent server stopping');
  await server.stop();
  log('info', 'agent server stopped');
}

/** The volume of a pod starts empty, whatever its image has at the same path. */
async function makeHome(home: string | undefined): Promise<void> {
  if (home) {
    await mkdir(home, { recursive: true, mode: 0o700 });
  }
}

/** Authorities that the service hands on, each in PEM. */
const AUTHORITY = 'SLIPWAY_AUTHORITY_';
/** Paths on Debian and Alpine, Red Hat and SUSE (https://go.dev/src/crypto/x509/root_linux.go). */
const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
];
const CERTIFICATE = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g;

/** Set where Node.js is to use proxies, but not load what it needs for them at its start. */
const LATE_PROXY = 'SLIPWAY_LATE_PROXY';

/**
 * The proxies and authorities of this process, which `fetch` uses from its first call on: each of them would delay the
 * start of listening, or the first request, by as long as that takes.
 */
export function ownNetwork(environment: NodeJS.ProcessEnv): {
  /** What calls by way of them. */
  wrap: (fetch: typeof globalThis.fetch) => typeof globalThis.fetch;
  /** What a first call would do. Repeatable. */
  prepare: () => void;
} {
  const authorities = numberedVariables(environment, AUTHORITY);
  const isLate = environment[LATE_PROXY] === '1';
  if (isLate) {
    // What starts later reads it.
    environment['NODE_USE_ENV_PROXY'] = '1';
  }
  let isPrepared = false;
  let exempt: string | undefined;
  const prepare = (): void => {
    if (!isPrepared && authorities.length > 0) {
      // Loaded only here, as it delays the start. The loader of the bundle imports no modules of Node.js.
      const tls = process.getBuiltinModule('node:tls');
      tls.setDefaultCACertificates([...tls.getCACertificates(), ...authorities]);
    }
    // Node.js reads exemptions once.
    if (isLate && (!isPrepared || environment['no_proxy'] !== exempt)) {
      process.getBuiltinModule('node:http').setGlobalProxyFromEnv(environment);
    }
    exempt = environment['no_proxy'];
    isPrepared = true;
  };
  const isUsed = environment['NODE_USE_ENV_PROXY'] === '1' || authorities.length > 0;
  return { wrap: (fetch) => (isUsed ? fetchInRanges(fetch, environment, prepare) : fetch), prepare };
}

/** Has what starts later trust the authorities too, besides those of the image and of the variables. */
export async function writeAuthorities(
  environment: NodeJS.ProcessEnv,
  systemBundles: readonly string[] = SYSTEM_BUNDLES,
): Promise<void> {
  const { HOME: home, SSL_CERT_FILE: own, JAVA_TOOL_OPTIONS: java } = environment;
  const added = numberedVariables(environment, AUTHORITY);
  if (added.length === 0 || !home) {
    return;
  }
  const named = new Set(CERTIFICATE_VARIABLES.flatMap((name) => environment[name] ?? []));
  const [system, ...others] = await Promise.all(
    [[...(own ? [own] : []), ...systemBundles], ...[...named].map((name) => [name])].map(firstFile),
  );
  const texts = [
    system ?? process.getBuiltinModule('node:tls').rootCertificates.join('\n'),
    ...others,
    ...added,
    '',
  ];
  const bundle = texts.filter((text) => text !== null).join('\n');
  const [file, store] = [path.join(home, '.authorities.pem'), path.join(home, '.authorities.jks')];
  // Tools may have put links there.
  await Promise.all([rm(file, { force: true }), rm(store, { force: true })]);
  await writeFile(file, bundle, { flag: 'wx' });
  await writeFile(store, javaTrustStore(bundle), { flag: 'wx' });
  for (const name of ['SSL_CERT_FILE', ...CERTIFICATE_VARIABLES]) {
    environment[name] = file;
  }
  environment['JAVA_TOOL_OPTIONS'] = [`-Djavax.net.ssl.trustStore=${store}`, java].join(' ').trim();
}

async function firstFile(names: readonly string[]): Promise<string | null> {
  const texts = await Promise.all(names.map((name) => readFile(name, 'utf8').catch(() => null)));
  return texts.find((text) => text !== null) ?? null;
}

/** Java reads no PEM. Magic number, version and entries of certificates, each without a date; then their digest. */
function javaTrustStore(bundle: string): Buffer {
  const entries = [...bundle.matchAll(CERTIFICATE)].map(([, base64 = ''], index) => {
    const certificate = Buffer.from(base64, 'base64');
    const head = [uint32(2), javaText(`authority-${index}`), Buffer.alloc(8), javaText('X.509')];
    return Buffer.concat([...head, uint32(certificate.length), certificate]);
  });
  const content = Buffer.concat([uint32(0xfeedfeed), uint32(2), uint32(entries.length), ...entries]);
  const password = Buffer.from('changeit', 'utf16le').swap16();
  const sealed = Buffer.concat([password, Buffer.from('Mighty Aphrodite'), content]);
  return Buffer.concat([content, hash('sha1', sealed, 'buffer')]);
}

function javaText(text: string): Buffer {
  return Buffer.concat([uint32(text.length).subarray(2), Buffer.from(text)]);
}

function uint32(value: number): Buffer {
  return Buffer.from([24, 16, 8, 0].map((shift) => value >>> shift));
}

/** The version that `engines` in package.json names. */
export const OLDEST_NODE = '22.19';

/** Why a program does not run on this Node.js, or null. An older one starts, and fails later. */
export function nodeProblem(version: string): string | null {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor = 0, oldestMinor = 0] = OLDEST_NODE.split('.').map(Number);
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)
    ? null
    : `Slipway needs Node.js ${OLDEST_NODE} or newer; this is ${version}`;
}

/** Calls addresses within ranges of NO_PROXY directly, of which the `fetch` of Node.js knows nothing. */
export function fetchInRanges(
  fetch: typeof globalThis.fetch,
  environment: NodeJS.ProcessEnv,
  prepare: () => void = () => undefined,
): typeof globalThis.fetch {
  return async (input, init) => {
    // Loaded with the first request, so that it does not delay the start of listening.
    const { exemptIfInRange } = await import('@slipway/common/http/address-rules.js');
    exemptIfInRange(new URL(input instanceof Request ? input.url : input), environment);
    prepare();
    return await fetch(input, init);
  };
}
