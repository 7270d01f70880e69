import { z } from 'zod';
import { type Attack, held, notPromised } from '../attack.js';

/** Prints which command lines it sees, and which of the processes it may signal; then ends those. */
const LOOK_AND_KILL = `
import { readdirSync, readFileSync } from 'node:fs';
const seen = [];
for (const pid of readdirSync('/proc').filter((name) => /^\\d+$/.test(name))) {
  try {
    seen.push(readFileSync('/proc/' + pid + '/cmdline', 'latin1').replaceAll('\\0', ' '));
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ESRCH') seen.push('unreadable');
  }
}
const killed = [];
for (const pid of JSON.parse(process.argv[2])) {
  try {
    process.kill(pid, 'SIGKILL');
    killed.push(pid);
  } catch {}
}
console.log(JSON.stringify({ seen, killed }));
`;
const look = z.object({ seen: z.array(z.string()), killed: z.array(z.number()) });

export const processesOfMachine: Attack = {
  name: 'processes-of-machine',
  finding: 'held',
  what: "Bob's tool looks for the processes of the service, the database and Alice, and sends them SIGKILL by number.",
  expected: {
    process: held('it sees its own processes only, and ends no other'),
    unwrapped: notPromised('command lines of all processes are visible; under root their users differ'),
    docker: held('it sees its own processes only, and ends no other'),
    kubernetes: held('it sees its own processes only, and ends no other'),
  },
  run: async (world) => {
    const { alice, bob, service } = world;
    const targets = [service.pid, ...world.sandboxProcesses(alice.sandboxId)];
    // The numbers mean something else in another namespace: those of its own tool are not wanted.
    const { seen } = look.parse(await bob.nodeJson(LOOK_AND_KILL, ['[]']));
    const foreign = seen.filter((line) =>
      ['postgres', 'dist/service/main.js', alice.sandboxId].some((word) => line.includes(word)),
    );
    const { killed } = look.parse(await bob.nodeJson(LOOK_AND_KILL, [JSON.stringify(targets)]));
    const isServiceAlive = (await world.pulse()) !== null;
    const isAliceWell = isServiceAlive && (await alice.isWell());
    return {
      held: foreign.length === 0 && isServiceAlive && isAliceWell,
      seen: `${seen.length} processes visible, ${foreign.length} of them foreign; ${killed.length} signals accepted; the service ${isServiceAlive ? 'lives' : 'is dead'}, Alice's sandbox ${isAliceWell ? 'is well' : 'is gone'}`,
    };
  },
};
