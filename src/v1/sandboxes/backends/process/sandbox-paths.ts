import path from 'node:path';
import { SandboxBackendError } from '../sandbox-backend.error.js';

/**
 * Where things of one sandbox lie. What the service believes (`label`, `program`, `exit`, `status`) lies outside of the
 * box, which alone belongs to the sandbox's user.
 */
export interface SandboxPaths {
  root: string;
  /** Whose sandbox this is. */
  label: string;
  /** Which process runs or ran. */
  program: string;
  /** How it ended, as we saw it. */
  exit: string;
  /** How it ended, as bubblewrap wrote it. */
  status: string;
  log: string;
  /** The list of users that the sandbox sees, with its own. */
  users: string;
  box: string;
  home: string;
  tmp: string;
  conversations: string;
  bashEvents: string;
  portFile: string;
  workspace: string;
}

/** @param workingDir where the agent works, below the box */
export function sandboxPaths(folder: string, id: string, workingDir: string): SandboxPaths {
  const root = path.join(folder, id);
  const box = path.join(root, 'box');
  return {
    root,
    label: path.join(root, 'sandbox.json'),
    program: path.join(root, 'program.json'),
    exit: path.join(root, 'exit.json'),
    status: path.join(root, 'status.json'),
    log: path.join(root, 'output.log'),
    users: path.join(root, 'passwd'),
    box,
    home: path.join(box, 'home'),
    tmp: path.join(box, 'tmp'),
    conversations: path.join(box, 'conversations'),
    bashEvents: path.join(box, 'bash_events'),
    portFile: path.join(box, 'port'),
    workspace: path.join(box, workingDir),
  };
}

const OWN_NAMES = new Set(['home', 'tmp', 'conversations', 'bash_events', 'port', 'port.new']);

/**
 * The working folder of a specification, as a path below the box.
 *
 * @throws SandboxBackendError when it leads elsewhere
 */
export function relativeWorkingDir(workingDir: string): string {
  const inside = path.normalize(workingDir);
  const [first = '.'] = inside.split(path.sep);
  if (path.isAbsolute(inside) || first === '.' || first === '..' || OWN_NAMES.has(first)) {
    throw new SandboxBackendError(
      `The process backend cannot work in ${workingDir}: working_dir of the sandbox specification must be a relative path such as workspace.`,
    );
  }
  return inside;
}
