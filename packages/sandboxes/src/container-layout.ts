import path from 'node:path';
import { textTail } from '@slipway/common/well-formed-text.js';
import { AGENT_SERVER_FLAGS } from './launch-variables.js';
import { type ProgramLaunch, PROJECT_FOLDER, SandboxBackendError, SHARED_FOLDER } from './sandbox-backend.js';

/** Whether an image of ours was built locally: a registry could have anything under a name without a host. */
export function isBuiltHere(image: string): boolean {
  return !image.includes('/');
}

export const INSTANCE_LABEL = 'slipway.instance';
export const SANDBOX_LABEL = 'slipway.sandbox-id';

export const AGENT_PORT = 8000;
export const EVERY_ADDRESS = '0.0.0.0';
/** The user and group of the agent image (Dockerfile). Other images do not assign this number. */
export const AGENT_USER = 10_001;

/** The path of our agent server and its Node.js in our image, and the mount point in other images. */
export const AGENT_SERVER_FOLDER = '/opt/slipway';
export const AGENT_SERVER_NODE = `${AGENT_SERVER_FOLDER}/bin/node`;
export const AGENT_SERVER_ENTRY = `${AGENT_SERVER_FOLDER}/agent-server/main.js`;
export const AGENT_SERVER_COMMAND = [
  AGENT_SERVER_NODE,
  ...AGENT_SERVER_FLAGS,
  AGENT_SERVER_ENTRY,
  // Both families: pods of some clusters have IPv6 addresses only.
  '--host',
  '::',
  '--port',
  String(AGENT_PORT),
  '--secrets-stdin',
];

export interface SandboxLayout {
  image: string;
  folder: string;
  secondFolder: string | null;
  args: string[] | undefined;
  env: Record<string, string>;
  keyOnStdin: boolean;
}

/** A stock agent server reads its key only from its environment, which tools see. @throws SandboxBackendError */
export function sandboxLayout(launch: ProgramLaunch, defaultImage: string): SandboxLayout {
  const { program } = launch;
  switch (program.kind) {
    case 'native': {
      const folder = '/sandbox';
      const args = [
        [
          '--workspace',
          resolveInside(folder, launch.workingDir === PROJECT_FOLDER ? 'workspace' : launch.workingDir),
        ],
        ['--conversations-path', `${folder}/conversations`],
        ['--bash-events-dir', `${folder}/bash_events`],
      ].flat();
      const env = {
        ...launch.env,
        HOME: `${folder}/home`,
        SLIPWAY_WORKSPACE_NAME: `${path.posix.resolve(folder, path.basename(PROJECT_FOLDER))}:${PROJECT_FOLDER}`,
        ...webhookVariables(launch),
      };
      const image = program.image ?? defaultImage;
      return { image, folder, secondFolder: SHARED_FOLDER, args, env, keyOnStdin: true };
    }
    case 'image': {
      if (launch.sessionKey === null) {
        throw new SandboxBackendError(
          `the image ${program.image} reads its session key from a variable, so it cannot be started without one`,
        );
      }
      const folder = SHARED_FOLDER;
      const workspace = resolveInside(folder, launch.workingDir);
      const args = program.args.map((arg) => arg.replaceAll('{port}', String(AGENT_PORT)));
      const env = {
        HOME: folder,
        OH_ENABLE_VNC: '0',
        OH_CONVERSATIONS_PATH: `${folder}/conversations`,
        OH_BASH_EVENTS_DIR: `${folder}/bash_events`,
        OH_WORKSPACE_PATH: workspace,
        ...launch.env,
        PORT: String(AGENT_PORT),
        OH_SESSION_API_KEYS_0: launch.sessionKey,
        ...webhookVariables(launch),
      };
      return {
        image: program.image,
        folder,
        secondFolder: null,
        args: args.length === 0 ? undefined : args,
        env,
        keyOnStdin: false,
      };
    }
    case 'command':
      throw new SandboxBackendError(
        'this specification starts a command, which runs in process sandboxes only; in containers and pods it needs an image',
      );
  }
}

/** Only the volume is writable, and only the volume survives a pause. */
function resolveInside(folder: string, workingDir: string): string {
  const resolved = path.posix.resolve(folder, workingDir);
  if (resolved !== folder && !resolved.startsWith(`${folder}/`)) {
    throw new SandboxBackendError(
      `the working folder ${workingDir} of this specification is not kept: it must be ${PROJECT_FOLDER}, relative or lie in ${folder}`,
    );
  }
  return resolved;
}

function webhookVariables({ callbackUrl }: ProgramLaunch): Record<string, string> {
  return callbackUrl === null ? {} : { OH_WEBHOOKS_0_BASE_URL: callbackUrl };
}

const FRAME_HEADER_BYTES = 8;

const REQUIREMENTS =
  'It takes a Linux image with glibc 2.28 or newer and libstdc++ (Debian, Ubuntu, Fedora and their like), or one made FROM the image of "npm run image:agent-server".';

const INCOMPATIBILITIES: [symptom: RegExp, explain: (found: string) => string][] = [
  // The file exists; the kernel does not find the loader that the file names.
  [
    /exec \/opt\/slipway\/bin\/node failed: no such file or directory/i,
    () => 'it has no glibc (Alpine has musl instead)',
  ],
  [/exec \/opt\/slipway\/bin\/node failed: exec format error/i, () => 'it is for another kind of processor'],
  [
    /^\/opt\/slipway\/bin\/node: error while loading shared libraries: ([^\s:]+)/m,
    (library) => `it lacks ${library}`,
  ],
  [
    /^\/opt\/slipway\/bin\/node: .*version `([^\s']+)' not found/m,
    (version) => `its libraries are too old, they lack ${version}`,
  ],
];

/** Strips the 8-byte frame headers (Engine API, "Attach to a container"). `modem.demuxStream` overflows the stack. */
export function demultiplexLog(log: Buffer): string {
  const payloads: Buffer[] = [];
  for (let at = 0; at + FRAME_HEADER_BYTES <= log.length;) {
    const end = at + FRAME_HEADER_BYTES + log.readUInt32BE(at + 4);
    payloads.push(log.subarray(at + FRAME_HEADER_BYTES, end));
    at = end;
  }
  return Buffer.concat(payloads).toString('utf8');
}

export function lastLines(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) {
    return text;
  }
  const end = textTail(text, maxCharacters);
  const newline = end.indexOf('\n');
  return newline === -1 || newline === end.length - 1 ? end : end.slice(newline + 1);
}

/** Why our agent server cannot run in a foreign image, by the last lines of its log; null when unknown. */
export function explainIncompatibleImage(log: string, image: string): string | null {
  for (const [symptom, explain] of INCOMPATIBILITIES) {
    const found = symptom.exec(log);
    if (found !== null) {
      return `The image ${image} cannot run our agent server: ${explain(found[1] ?? '')}. ${REQUIREMENTS}`;
    }
  }
  return null;
}
