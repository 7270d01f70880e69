import {
  childrenOf,
  namespacePids,
  type ProcessFacts,
  readProcess,
} from '../../../../common/processes/process-table.js';

/** Most processes between the one that was started and the namespace's first: two bubblewraps. */
const MOST_STAGES = 4;

/** The pid namespace that a sandbox's program runs in. */
export interface ProgramNamespace {
  /** Its first process, bubblewrap: with this one the kernel ends everything in it (pid_namespaces(7)). */
  init: ProcessFacts;
  /** Its second process, the program. */
  program: number;
}

/** The namespace below the process that was started; null while it is still being made, and when it is gone. */
export function findNamespace(root: number): ProgramNamespace | null {
  const ours = namespacePids(process.pid).length;
  let stages = [root];
  for (let stage = 0; stage < MOST_STAGES; stage += 1) {
    const children = stages.flatMap((pid) => childrenOf(pid));
    const first = children.find((pid) => isNumberInside(pid, ours, 1));
    const init = first === undefined ? null : readProcess(first);
    if (init !== null) {
      const program = childrenOf(init.pid).find((pid) => isNumberInside(pid, ours, 2));
      return program === undefined ? null : { init, program };
    }
    stages = children;
  }
  return null;
}

/** Whether a process has this number in a namespace directly below ours. */
function isNumberInside(pid: number, ours: number, number: number): boolean {
  const pids = namespacePids(pid);
  return pids.length === ours + 1 && pids.at(-1) === number;
}
