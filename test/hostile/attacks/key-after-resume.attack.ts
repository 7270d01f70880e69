import { type Attack, everywhere, held } from '../attack.js';
import { useOldKey } from '../support/old-key.js';

export const keyAfterResume: Attack = {
  name: 'key-after-resume',
  finding: 1,
  what: "Bob has learned the key of Alice's sandbox, and uses it after she has paused and resumed.",
  expected: everywhere(held('each start has a key of its own; the old one is answered 401')),
  run: async (world) =>
    useOldKey(world, async () => {
      await world.pauseWhole(world.alice);
      await world.alice.resume();
    }),
};
