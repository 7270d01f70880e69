import { totalmem } from 'node:os';
import { type Attack, held } from '../attack.js';

const MEBIBYTE = 1024 * 1024;
/** Takes as much memory as it is told, or as it can. */
const GREEDY = `
  const all = [];
  for (let taken = 0; taken < Number(process.argv[2]); taken += 16) { all.push(Buffer.alloc(16 * 1024 * 1024, 1)); }
  console.log('took it all');
`;
/** More than a sandbox gets by default, less than the machine has. */
const MORE_THAN_ALLOWED_MB = 4_608;
const KEPT = held('the kernel ends the tool at the limit of the sandbox; nobody else notices');

export const memoryBomb: Attack = {
  name: 'memory-bomb',
  finding: 'not tried',
  what: 'A tool of Bob takes memory without end.',
  expected: { process: KEPT, unwrapped: KEPT, docker: KEPT, kubernetes: KEPT },
  run: async (world) => {
    const { alice, bob } = world;
    if (totalmem() < 2 * MORE_THAN_ALLOWED_MB * MEBIBYTE) {
      return { held: true, seen: 'not tried: the machine has too little memory to tell' };
    }
    const taking = bob.node(GREEDY, [String(MORE_THAN_ALLOWED_MB)], 60);
    const pulse = await world.pulse();
    const { output, exitCode } = await taking;
    const isWell = await alice.isWell();
    const tookAll = output.includes('took it all');
    return {
      held: !tookAll && isWell && pulse !== null,
      seen: `the tool ${tookAll ? `took ${MORE_THAN_ALLOWED_MB} MB` : `ended with ${exitCode}`}; the service answers within ${pulse?.toFixed(0) ?? 'no'} ms, Alice is ${isWell ? 'well' : 'not well'}`,
    };
  },
};
