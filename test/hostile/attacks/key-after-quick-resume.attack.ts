import { type Attack, everywhere, held } from '../attack.js';
import { useOldKey } from '../support/old-key.js';

export const keyAfterQuickResume: Attack = {
  name: 'key-after-quick-resume',
  finding: 'not tried',
  what: "Bob has learned the key of Alice's sandbox, and uses it after she has paused and resumed at once, before her program has ended.",
  expected: everywhere(held('each start has a key of its own; the old one is answered 401')),
  run: async (world) =>
    useOldKey(world, async () => {
      await world.alice.pause();
      await world.alice.resume();
    }),
};
