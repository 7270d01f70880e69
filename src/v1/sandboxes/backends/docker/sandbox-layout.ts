import path from 'node:path';
import { SandboxBackendError } from '../sandbox-backend.error.js';
import type { SandboxLaunch } from '../sandbox-backend.js';
import { AGENT_PORT } from './container-facts.js';

/** What the image is told when it starts. */
export interface SandboxLayout {
  image: string;
  /** Where the sandbox's volume is mounted. */
  folder: string;
  /** Undefined: what the image itself says. */
  args: string[] | undefined;
  env: Record<string, string>;
  /** The session key comes on standard input. */
  keyOnStdin: boolean;
}

/**
 * Where things are inside a container, and how its agent server is told.
 *
 * Our own image gets its session key on standard input. A stock agent server (openhands.agent_server) knows no other
 * way than its environment, which its tools and whoever may inspect the container can read.
 *
 * @throws SandboxBackendError when the program or its working folder cannot be had in a container
 */
export function sandboxLayout(launch: SandboxLaunch, defaultImage: string): SandboxLayout {
  const { program } = launch;
  switch (program.kind) {
    case 'native': {
      const folder = '/sandbox';
      const args = [
        ['--workspace', inside(folder, launch.workingDir)],
        ['--conversations-path', `${folder}/conversations`],
        ['--bash-events-dir', `${folder}/bash_events`],
      ].flat();
      const env = { ...launch.env, HOME: `${folder}/home`, ...webhooks(launch) };
      return { image: program.image ?? defaultImage, folder, args, env, keyOnStdin: true };
    }
    case 'image': {
      const folder = '/workspace';
      inside(folder, launch.workingDir);
      const args = program.args.map((arg) => arg.replaceAll('{port}', String(AGENT_PORT)));
      const env = {
        HOME: folder,
        OH_ENABLE_VNC: '0',
        OH_CONVERSATIONS_PATH: `${folder}/conversations`,
        OH_BASH_EVENTS_DIR: `${folder}/bash_events`,
        ...launch.env,
        PORT: String(AGENT_PORT),
        OH_SESSION_API_KEYS_0: launch.sessionKey,
        ...webhooks(launch),
      };
      return {
        image: program.image,
        folder,
        args: args.length === 0 ? undefined : args,
        env,
        keyOnStdin: false,
      };
    }
    case 'command':
      throw new SandboxBackendError(
        'this specification starts a command, which runs in process sandboxes only; with SANDBOX_BACKEND=docker it needs an image',
      );
  }
}

function webhooks({ callbackUrl }: SandboxLaunch): Record<string, string> {
  return callbackUrl === null ? {} : { OH_WEBHOOKS_0_BASE_URL: callbackUrl };
}

/** Only the volume can be written to, and only it is there after a pause. */
function inside(folder: string, workingDir: string): string {
  const resolved = path.posix.resolve(folder, workingDir);
  if (resolved !== folder && !resolved.startsWith(`${folder}/`)) {
    throw new SandboxBackendError(
      `the working folder ${workingDir} of this specification is not kept: it must be relative or lie in ${folder}`,
    );
  }
  return resolved;
}
