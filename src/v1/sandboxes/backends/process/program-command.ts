import { access } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import path from 'node:path';
import { proxyVariables } from '../launch-variables.js';
import {
  portVariables,
  SandboxBackendError,
  type SandboxLaunch,
  type SandboxProgram,
} from '../sandbox-backend.js';
import {
  asUser,
  existingPaths,
  programFiles,
  sandboxWrapper,
  type VisibleFiles,
  visibleFiles,
} from './isolation.js';
import type { Platform } from './platform.js';
import type { ProcessBackendOptions } from './process-options.js';
import type { SandboxPaths } from './sandbox-files.js';

export const LOOPBACK = '127.0.0.1';

/** The address of a program that listens on this port. */
export function programAddress(listenAddress: string | null, port: number): string {
  const host = listenAddress ?? LOOPBACK;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The addresses of ports, by their names. */
export function programAddresses(
  listenAddress: string | null,
  ports: Readonly<Record<string, number>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(ports).map(([name, port]) => [name, programAddress(listenAddress, port)]),
  );
}

/** What runs in a sandbox, without what is put around it. */
interface ProgramCommand {
  command: string[];
  /** What is written to its standard input, which is then closed; null: it has none. */
  input: string | null;
}

interface ProgramInput {
  launch: SandboxLaunch;
  paths: SandboxPaths;
  agentServer: ProcessBackendOptions['agentServer'];
  /** Put before its tools. */
  toolWrapper: readonly string[];
  /** Where it is to listen. */
  host: string;
  /** Of programs that are told their port. */
  port: number | null;
}

/** @throws SandboxBackendError for images, which need something that runs images */
export function programCommand(input: ProgramInput): ProgramCommand {
  const { launch, paths, agentServer, toolWrapper, host, port } = input;
  const { program } = launch;
  if (program.kind === 'image') {
    throw imageRefused(program.image);
  }
  if (program.kind === 'command') {
    const args = program.args.map((arg) => arg.replaceAll('{port}', String(port)).replaceAll('{host}', host));
    return { command: [program.command, ...args], input: null };
  }
  const command = [
    [agentServer.node, ...agentServer.args, agentServer.entry],
    ['--host', host, '--port', '0', '--port-file', paths.portFile],
    ['--workspace', paths.workspace, '--conversations-path', paths.conversations],
    ['--bash-events-dir', paths.bashEvents, '--secrets-stdin'],
    launch.callbackUrl === null ? [] : ['--webhook-url', launch.callbackUrl],
    toolWrapper.length === 0 ? [] : ['--tool-wrapper', JSON.stringify(toolWrapper)],
  ].flat();
  return { command, input: `${JSON.stringify({ session_api_key: launch.sessionKey })}\n` };
}

/** Whether a program has to be told on which port it shall listen. */
export function needsAssignedPort(program: SandboxProgram): boolean {
  return program.kind === 'command';
}

/** What a specification asks for and processes cannot have, in words for people. */
export function unsupportedOverrides({ program, cpu, memoryMb, runtime, network }: SandboxLaunch): string[] {
  const wishes: [string, unknown][] = [
    ['the image', program.kind === 'native' ? program.image : null],
    ['the processor limit', cpu],
    ['the memory limit', memoryMb],
    ['the container runtime', runtime],
    ['the network', network],
  ];
  return wishes
    .filter(([, wish]) => wish !== null)
    .map(([name]) => `The process backend cannot apply ${name} of the sandbox specification.`);
}

function imageRefused(image: string): SandboxBackendError {
  return new SandboxBackendError(
    `The process backend cannot run the image ${image}: choose a sandbox specification without an image, or SANDBOX_BACKEND=docker.`,
  );
}

/** The descriptor that bubblewrap's reports go to. */
const STATUS_FD = 3;

/** Sockets that rule the machine lie there: of container engines, of the session's services. */
const ALWAYS_HIDDEN = ['/run'];
/** What name resolution may need of it. */
const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve'];
const CERTIFICATE_VARIABLES = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE'];

/** What comes before a sandbox's program on this platform. */
export async function programWrapper(
  options: ProcessBackendOptions,
  platform: Platform,
  paths: SandboxPaths,
  user: number | null,
): Promise<string[]> {
  if (platform.isolation === 'bwrap') {
    const [visible, hasVarTmp] = await Promise.all([filesSeen(options), exists('/var/tmp')]);
    return sandboxWrapper({
      programs: platform.programs,
      visible,
      paths,
      hasVarTmp,
      user,
      statusFd: STATUS_FD,
    });
  }
  if (user === null) {
    return [];
  }
  return platform.setpriv === null
    ? []
    : [platform.setpriv, ...asUser(user), '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all', '--'];
}

/** As whom to start the program where nothing comes before it that changes the user. */
export function spawnIdentity(platform: Platform, user: number | null): { uid?: number; gid?: number } {
  return platform.isolation === 'none' && platform.setpriv === null && user !== null
    ? { uid: user, gid: user }
    : {};
}

async function filesSeen(options: ProcessBackendOptions): Promise<VisibleFiles> {
  const { folder, hiddenPaths, agentServer, environment } = options;
  const { product, files } = programFiles(agentServer.node, agentServer.entry);
  const certificates = CERTIFICATE_VARIABLES.flatMap((name) => environment[name] ?? []);
  const named = [...files, ...RESOLVER_FILES, ...certificates.filter((name) => path.isAbsolute(name))];
  const [hidden, needed] = await Promise.all([
    existingPaths([...ALWAYS_HIDDEN, folder, product, ...hiddenPaths]),
    existingPaths(named),
  ]);
  const there = await Promise.all(named.map(async (name) => ((await exists(name)) ? [name] : [])));
  return visibleFiles({ hidden, needed: [...there.flat(), ...needed.map((entry) => entry.path)] });
}

async function exists(name: string): Promise<boolean> {
  return await access(name).then(
    () => true,
    () => false,
  );
}

/** By this variable the processes of a sandbox are known even when they left its group and their parents are gone. */
const MARKER_VARIABLE = 'SLIPWAY_SANDBOX';

/** How that variable begins in every process of a sandbox, as `NAME=value`. */
export function sandboxMarker(instanceId: string, id: string): string {
  return `${MARKER_VARIABLE}=${instanceId}/${id}/`;
}

/** The whole variable, in processes of one start of a sandbox. */
export function programMarker(instanceId: string, id: string, run: string): string {
  return `${sandboxMarker(instanceId, id)}${run}`;
}

const INHERITED =
  /^(PATH|TZ|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE)$/i;

interface EnvironmentInput {
  /** The service's own variables. */
  own: Readonly<Record<string, string | undefined>>;
  launch: SandboxLaunch;
  paths: SandboxPaths;
  /** Folder for temporary files as the program sees it. */
  tmp: string;
  /** The variable that marks the processes of this start, as `NAME=value`. */
  marker: string;
  /** Of programs that are told their port; null: it chooses one itself. */
  port: number | null;
  /** Ports for what is started inside, by name. */
  ports: Readonly<Record<string, number>>;
  /** Where all of them listen. */
  host: string;
}

/**
 * The whole environment of a sandbox's program: of the service's own variables only those by name that every program
 * needs. Our agent server is told its key elsewhere; other programs know only variables, so there it stands among
 * them, where their tools may read it.
 */
export function sandboxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { own, launch, paths, tmp, marker, port, ports, host } = input;
  const inherited = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined && INHERITED.test(name) ? [[name, value] as const] : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(inherited),
    ...proxyVariables(own, launch, true),
    HOME: paths.home,
    TMPDIR: tmp,
    ...(port === null ? {} : protocolVariables(launch, paths, port)),
    ...launch.env,
    ...portVariables(ports, host),
    [MARKER_VARIABLE]: marker.slice(MARKER_VARIABLE.length + 1),
  };
}

/** What the stock agent server reads. */
function protocolVariables(launch: SandboxLaunch, paths: SandboxPaths, port: number): Record<string, string> {
  return {
    PORT: String(port),
    OH_SESSION_API_KEYS_0: launch.sessionKey,
    OH_CONVERSATIONS_PATH: paths.conversations,
    OH_BASH_EVENTS_DIR: paths.bashEvents,
    OH_WORKSPACE_PATH: paths.workspace,
    ...(launch.callbackUrl === null ? {} : { OH_WEBHOOKS_0_BASE_URL: launch.callbackUrl }),
  };
}
