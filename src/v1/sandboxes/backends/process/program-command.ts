import { isIPv6 } from 'node:net';
import { portVariables, proxyVariables } from '../launch-variables.js';
import { SandboxBackendError, type SandboxLaunch, type SandboxProgram } from '../sandbox-backend.js';
import type { ProcessBackendOptions } from './process-options.js';
import type { SandboxPaths } from './sandbox-files.js';

export const LOOPBACK = '127.0.0.1';
/** Identifies the processes of a sandbox even when they left its process group and their parents are gone. */
const MARKER_VARIABLE = 'SLIPWAY_SANDBOX';
const INHERITED_VARIABLES =
  /^(PATH|TZ|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE)$/i;

/** What runs in a sandbox, without its wrapper. */
interface ProgramCommand {
  command: string[];
  /** Written to its standard input, which is then closed; null: it has none. */
  input: string | null;
}

interface ProgramInput {
  launch: SandboxLaunch;
  paths: SandboxPaths;
  agentServer: ProcessBackendOptions['agentServer'];
  /** Precedes each of its tools. */
  toolWrapper: readonly string[];
  /** Where it must listen. */
  host: string;
  /** Null: it picks one itself. */
  port: number | null;
}

/** @throws SandboxBackendError for images, which need a backend that runs them */
export function programCommand(input: ProgramInput): ProgramCommand {
  const { launch, paths, agentServer, toolWrapper, host, port } = input;
  const { program } = launch;
  if (program.kind === 'image') {
    throw new SandboxBackendError(
      `The process backend cannot run the image ${program.image}: choose a sandbox specification without an image, or SANDBOX_BACKEND=docker.`,
    );
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

/** Whether a program must be told which port to listen on. */
export function needsAssignedPort(program: SandboxProgram): boolean {
  return program.kind === 'command';
}

/** What the specification asks for and processes cannot have, in sentences for users. */
export function unsupportedOverrides({ program, cpu, memoryMb, runtime, network }: SandboxLaunch): string[] {
  const overrides: [string, unknown][] = [
    ['the image', program.kind === 'native' ? program.image : null],
    ['the processor limit', cpu],
    ['the memory limit', memoryMb],
    ['the container runtime', runtime],
    ['the network', network],
  ];
  return overrides
    .filter(([, value]) => value !== null)
    .map(([name]) => `The process backend cannot apply ${name} of the sandbox specification.`);
}

interface EnvironmentInput {
  serviceEnvironment: Readonly<Record<string, string | undefined>>;
  launch: SandboxLaunch;
  paths: SandboxPaths;
  /** Folder for temporary files as the program sees it. */
  tmp: string;
  /** The variable that marks the processes of this start, as `NAME=value`. */
  marker: string;
  /** Of programs that are told their port; null: it picks one itself. */
  port: number | null;
  /** Ports for programs that agents start, by name. */
  ports: Readonly<Record<string, number>>;
  /** Where all of them listen. */
  host: string;
}

/**
 * The whole environment of a sandbox's program. Of the service's own variables it gets an allow-list that every program
 * needs. Our agent server reads its key elsewhere; other programs read it only from a variable, which their tools can
 * see as well.
 */
export function sandboxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { serviceEnvironment, launch, paths, tmp, marker, port, ports, host } = input;
  const inherited = Object.entries(serviceEnvironment).flatMap(([name, value]) =>
    value !== undefined && INHERITED_VARIABLES.test(name) ? [[name, value] as const] : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(inherited),
    ...proxyVariables(serviceEnvironment, launch, true),
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

/** How the marker variable begins in every process of a sandbox, as `NAME=value`. */
export function sandboxMarker(instanceId: string, id: string): string {
  return `${MARKER_VARIABLE}=${instanceId}/${id}/`;
}

/** The whole marker variable, in processes of one start of a sandbox. */
export function programMarker(instanceId: string, id: string, run: string): string {
  return `${sandboxMarker(instanceId, id)}${run}`;
}

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
