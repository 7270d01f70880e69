import { readlinkSync } from 'node:fs';
import { LEFT_OPEN } from '../../support/service-process.js';
import { type Attack, held } from '../attack.js';

/** Names everything that a tool finds open. */
const LOOK = 'for fd in /proc/self/fd/*; do readlink $fd; done';
const EXPECTED = held('nothing that the service was started with is open in a sandbox');

export const inheritedDescriptors: Attack = {
  name: 'inherited-descriptors',
  finding: 12,
  what: 'Bob reads files that whoever started the service has left open.',
  expected: { process: EXPECTED, unwrapped: EXPECTED },
  run: async (world) => {
    const file = readlinkSync(`/proc/${world.service.pid}/fd/${LEFT_OPEN}`);
    const { output } = await world.bob.sh(LOOK);
    const inTool = output.split('\n').includes(file);
    const processes = world.sandboxProcesses(world.bob.sandboxId);
    const holders = processes.filter((pid) => openFileOf(pid) === file);
    return {
      held: !inTool && holders.length === 0,
      seen: `${LEFT_OPEN} of the service is open in ${holders.length} of ${processes.length} processes of the sandbox${inTool ? ', and in a tool' : ''}`,
    };
  },
};

/** Null when the number is not open there, or the process has ended. */
function openFileOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/fd/${LEFT_OPEN}`);
  } catch {
    return null;
  }
}
