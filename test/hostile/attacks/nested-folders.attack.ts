import { readdirSync } from 'node:fs';
import path from 'node:path';
import { until } from '../../support/until.js';
import { type Attack, onOneMachine, held } from '../attack.js';

/** Goes down step by step, so that no path is ever too long for it. */
const NEST = `
  import { mkdirSync, writeFileSync } from 'node:fs';
  process.chdir(process.env.HOME);
  for (let level = 0; level < 3000; level += 1) { mkdirSync('nested'); process.chdir('nested'); }
  writeFileSync('deepest', 'text');
  console.log('nested');
`;

export const nestedFolders: Attack = {
  name: 'nested-folders',
  finding: 5,
  what: 'Bob nests 3,000 folders and deletes his sandbox; the service is restarted.',
  expected: onOneMachine(
    held('the files are gone when the log says so, and sandboxes start after a restart'),
  ),
  run: async (world) => {
    const { alice, bob } = world;
    const { output } = await bob.node(NEST, [], 60);
    if (!output.includes('nested')) {
      throw new Error(`the folders were not made: ${output.slice(-300)}`);
    }
    const id = bob.sandboxId;
    await bob.send('DELETE', `/api/v1/sandboxes/${id}`);
    await until(() =>
      world.service.log.some((line) => line.includes('sandbox removed') && line.includes(id)),
    );
    const left =
      world.backend === 'docker'
        ? []
        : readdirSync(path.join(world.dataDir, 'sandboxes')).filter((name) => name.includes(id));
    await world.restart('SIGTERM');
    await bob.renew();
    const isWell = (await bob.isWell()) && (await alice.isWell());
    return {
      held: left.length === 0 && isWell,
      seen: `left on the disk: ${left.length}; after a restart sandboxes ${isWell ? 'start' : 'do not start'}`,
    };
  },
};
