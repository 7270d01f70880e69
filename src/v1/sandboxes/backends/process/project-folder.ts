import { realpath } from 'node:fs/promises';
import { PROJECT_FOLDER, SHARED_FOLDER } from '../sandbox-backend.js';
import type { SandboxPaths } from './sandbox-files.js';

/** Where an agent works, and what else is called so. */
export interface WorkspaceNames {
  /** What tools see, and the agent server reports. */
  workspace: string;
  /** Other names, as `NAME=FOLDER`. */
  aliases: string[];
  /** Further folders of clients. */
  fileRoots: string[];
}

/**
 * Whether sandboxes with mounts of their own can have the folder: nothing that they need of the machine may be below it, as
 * with a service that is itself installed there.
 *
 * @param needed folders and files that a sandbox sees under their own names
 */
export async function canMountProject(needed: readonly string[]): Promise<boolean> {
  const real = needed.map(async (name) => await realpath(name).catch(() => name));
  return ![...needed, ...(await Promise.all(real))].some((name) => isShared(name));
}

/** Whether a path is that of the shared folder, or below it. */
function isShared(name: string): boolean {
  return name === SHARED_FOLDER || name.startsWith(`${SHARED_FOLDER}/`);
}

/** @param isMounted whether the sandbox sees the folder; if not, its agent server translates the path where it is told one */
export function workspaceNames(paths: SandboxPaths, isMounted: boolean): WorkspaceNames {
  const { workspace, shared } = paths;
  return isMounted
    ? {
        workspace: PROJECT_FOLDER,
        // What sandboxes of earlier versions wrote down, and what scripts in them have kept.
        aliases: [`${workspace}=${PROJECT_FOLDER}`],
        fileRoots: [SHARED_FOLDER, workspace],
      }
    : {
        workspace,
        aliases: [`${PROJECT_FOLDER}=${workspace}`, `${SHARED_FOLDER}=${shared}`],
        fileRoots: [shared],
      };
}
