import { isIPv6 } from 'node:net';
import {
  BUNDLE_VARIABLES,
  egressVariables,
  foreignAuthority,
  portVariables,
  proxyVariables,
} from '../launch-variables.js';
import {
  PROJECT_FOLDER,
  SandboxBackendError,
  type ProgramLaunch,
  type SandboxProgram,
  sessionKeyLine,
  SHARED_FOLDER,
} from '../sandbox-backend.js';
import { type ProgramInput, type ProgramRecord } from './sandbox-program.js';
import type { ProcessBackendOptions } from './process.options.js';
import { HOST_LOOPBACK, type NetworkRules } from './sandbox-network.js';
import { agentSocket, portSocket, type SandboxPaths } from './sandbox-files.js';

export const LOOPBACK = '127.0.0.1';
/** The port of programs that speak TCP only, in a network of their own. */
const OWN_PORT = 8000;
/** Identifies processes of a sandbox even when they left its process group and their parents are gone. */
const MARKER_VARIABLE = 'SLIPWAY_SANDBOX';
const INHERITED_VARIABLES =
  /^(PATH|TZ|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE)$/i;

interface ProgramCommand {
  command: string[];
  input: ProgramInput;
}

export interface WorkspaceNames {
  /** The name that tools see and the agent server reports. */
  workspace: string;
  aliases: string[];
  fileRoots: string[];
}

/** Returns the names of the workspace. Without the mount, the agent server translates the path wherever it gets one. */
export function workspaceNames(paths: SandboxPaths, isMounted: boolean): WorkspaceNames {
  const { workspace, shared } = paths;
  return isMounted
    ? {
        workspace: PROJECT_FOLDER,
        // Earlier versions wrote this path down, and scripts in sandboxes keep it.
        aliases: [`${workspace}=${PROJECT_FOLDER}`],
        fileRoots: [SHARED_FOLDER, workspace],
      }
    : {
        workspace,
        aliases: [`${PROJECT_FOLDER}=${workspace}`, `${SHARED_FOLDER}=${shared}`],
        fileRoots: [shared],
      };
}

interface CommandInput {
  launch: ProgramLaunch;
  paths: SandboxPaths;
  agentServer: ProcessBackendOptions['agentServer'];
  toolWrapper: readonly string[];
  names: WorkspaceNames;
  host: string;
  /** TCP port of this machine; null when a Unix socket in its box leads to the program. */
  port: number | null;
  rules: NetworkRules | null;
}

/** @throws SandboxBackendError for images, and for programs that cannot wait for a key */
export function programCommand(input: CommandInput): ProgramCommand {
  const { launch, paths, agentServer, toolWrapper, names, host, port, rules } = input;
  const { program } = launch;
  if (program.kind === 'image') {
    throw new SandboxBackendError(
      `The process backend cannot run the image ${program.image}: choose a sandbox specification without an image, or SANDBOX_BACKEND=docker.`,
    );
  }
  const node = [agentServer.node, ...agentServer.args];
  const relays = rules === null ? [] : relayArguments(launch, paths, rules);
  if (program.kind === 'command') {
    const listensOn = String(port ?? OWN_PORT);
    const args = program.args.map((arg) => arg.replaceAll('{port}', listensOn).replaceAll('{host}', host));
    const own = ['--relay', `unix:${agentSocket(paths)}=tcp:${LOOPBACK}:${OWN_PORT}`];
    const wrapper = rules === null ? [] : [...node, agentServer.relay, ...relays, ...own, '--'];
    if (launch.sessionKey === null) {
      throw new SandboxBackendError(`${program.command} cannot be started without a session key.`);
    }
    return { command: [...wrapper, program.command, ...args], input: { kind: 'none' } };
  }
  const command = [
    [...node, agentServer.entry],
    port === null ? ['--socket', agentSocket(paths)] : ['--host', host, '--port', String(port)],
    ['--workspace', names.workspace, '--conversations-path', paths.conversations],
    names.aliases.flatMap((alias) => ['--alias', alias]),
    names.fileRoots.flatMap((folder) => ['--file-root', folder]),
    ['--bash-events-dir', paths.bashEvents, '--secrets-stdin'],
    launch.callbackUrl === null ? [] : ['--webhook-url', launch.callbackUrl],
    toolWrapper.length === 0 ? [] : ['--tool-wrapper', JSON.stringify(toolWrapper)],
    relays,
  ].flat();
  return {
    command,
    input:
      launch.sessionKey === null
        ? { kind: 'key-pipe' }
        : { kind: 'text', text: sessionKeyLine(launch.sessionKey) },
  };
}

function relayArguments({ ports }: ProgramLaunch, paths: SandboxPaths, rules: NetworkRules): string[] {
  const inbound = Object.entries(ports).map(
    ([name, port]) => `unix:${portSocket(paths, name)}=tcp:${LOOPBACK}:${port}`,
  );
  const outbound = rules.loopbackPorts.map((port) => `tcp:${LOOPBACK}:${port}=tcp:${HOST_LOOPBACK}:${port}`);
  return ['--await-network', ...[...inbound, ...outbound].flatMap((relay) => ['--relay', relay])];
}

export function needsAssignedPort(
  program: SandboxProgram,
  { networked, listenAddress }: { networked: boolean; listenAddress: string | null },
): boolean {
  return !networked && (program.kind === 'command' || listenAddress !== null);
}

/** What the specification asks for and processes cannot have, in sentences for users. */
export function unsupportedOverrides(
  { program, cpu, memoryMb, runtime, network }: ProgramLaunch,
  holds: (resource: 'cpu' | 'memory') => boolean,
): string[] {
  const overrides: [string, unknown][] = [
    ['the image', program.kind === 'native' ? program.image : null],
    ['the processor limit', holds('cpu') ? null : cpu],
    ['the memory limit', holds('memory') ? null : memoryMb],
    ['the container runtime', runtime],
    ['the network', network],
  ];
  return overrides
    .filter(([, value]) => value !== null)
    .map(([name]) => `The process backend cannot apply ${name} of the sandbox specification.`);
}

interface EnvironmentInput {
  serviceEnvironment: Readonly<Record<string, string | undefined>>;
  launch: ProgramLaunch;
  paths: SandboxPaths;
  workspace: string;
  tmp: string;
  /** `NAME=value`, which marks the processes of this start. */
  marker: string;
  port: number | null;
  ports: Readonly<Record<string, number>>;
  host: string;
}

/** The environment has an allow-list of the service's variables. Only programs other than ours get their key in it. */
export function sandboxEnvironment(input: EnvironmentInput): Record<string, string> {
  const { serviceEnvironment, launch, paths, workspace, tmp, marker, port, ports, host } = input;
  const inherited = Object.entries(serviceEnvironment).flatMap(([name, value]) =>
    value !== undefined && INHERITED_VARIABLES.test(name) ? [[name, value] as const] : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(inherited),
    ...(launch.egress === undefined && proxyVariables(serviceEnvironment, launch, true)),
    HOME: paths.home,
    TMPDIR: tmp,
    ...(launch.program.kind === 'command'
      ? protocolVariables(launch, paths, workspace, port ?? OWN_PORT)
      : {}),
    ...(foreignAuthority(launch) !== null &&
      Object.fromEntries(BUNDLE_VARIABLES.map((name) => [name, paths.authorities]))),
    ...launch.env,
    ...(launch.egress !== undefined && egressVariables(launch, launch.egress, '127.0.0.1')),
    ...portVariables(ports, host),
    [MARKER_VARIABLE]: marker.slice(MARKER_VARIABLE.length + 1),
  };
}

function protocolVariables(
  launch: ProgramLaunch,
  paths: SandboxPaths,
  workspace: string,
  port: number,
): Record<string, string> {
  return {
    PORT: String(port),
    ...(launch.sessionKey !== null && { OH_SESSION_API_KEYS_0: launch.sessionKey }),
    OH_CONVERSATIONS_PATH: paths.conversations,
    OH_BASH_EVENTS_DIR: paths.bashEvents,
    OH_WORKSPACE_PATH: workspace,
    ...(launch.callbackUrl === null ? {} : { OH_WEBHOOKS_0_BASE_URL: launch.callbackUrl }),
  };
}

/** The beginning of the marker variable in every process of a sandbox, as `NAME=value`. */
export function sandboxMarker(instanceId: string, id: string): string {
  return `${MARKER_VARIABLE}=${instanceId}/${id}/`;
}

/** The whole marker variable, in processes of one start of a sandbox. */
export function programMarker(instanceId: string, id: string, run: string): string {
  return `${sandboxMarker(instanceId, id)}${run}`;
}

export function programAddress(listenAddress: string | null, port: number): string {
  const host = listenAddress ?? LOOPBACK;
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

export function portAddresses(
  { networked, ports }: Pick<ProgramRecord, 'networked' | 'ports'>,
  paths: SandboxPaths,
  listenAddress: string | null,
): Record<string, string> {
  const addresses = Object.entries(ports).map(([name, port]) => [
    name,
    networked ? socketAddress(portSocket(paths, name)) : programAddress(listenAddress, port),
  ]);
  return Object.fromEntries(addresses);
}

export function socketAddress(socket: string): string {
  return `unix:${socket}`;
}
