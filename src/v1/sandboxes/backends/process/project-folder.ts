import { realpath } from 'node:fs/promises';
import { PROJECT_FOLDER, SHARED_FOLDER } from '../sandbox-backend.js';
import type { SandboxPaths } from './sandbox-files.js';

export interface WorkspaceNames {
  /** The name that tools see and the agent server reports. */
  workspace: string;
  aliases: string[];
  fileRoots: string[];
}

/** Whether the folder can be mounted: none of the `needed` paths may be below it (a service installed there). */
export async function canMountProject(needed: readonly string[]): Promise<boolean> {
  const real = needed.map(async (name) => await realpath(name).catch(() => name));
  return ![...needed, ...(await Promise.all(real))].some((name) => isShared(name));
}

function isShared(name: string): boolean {
  return name === SHARED_FOLDER || name.startsWith(`${SHARED_FOLDER}/`);
}

/** Without the mount the agent server translates the path wherever it gets one. */
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
