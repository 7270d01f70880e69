import { SandboxBackendError } from '../sandbox-backend.error.js';
import type { SandboxLaunch, SandboxProgram } from '../sandbox-backend.js';
import type { ProcessBackendOptions } from './process-backend-options.js';
import type { SandboxPaths } from './sandbox-paths.js';

/** What runs in a sandbox, without what is put around it. */
export interface ProgramCommand {
  command: string[];
  /** What is written to its standard input, which is then closed; null: it has none. */
  input: string | null;
}

export interface ProgramInput {
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
export function isToldItsPort(program: SandboxProgram): boolean {
  return program.kind === 'command';
}

/** What a specification asks for and processes cannot have, in words for people. */
export function unmetWishes({ program, cpu, memoryMb, runtime, network }: SandboxLaunch): string[] {
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
