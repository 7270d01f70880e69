import type { Scenario } from '../scenario.js';
import { ChaosWorld, waitBetween } from '../support/chaos-world.js';

export const serviceKilled: Scenario = {
  name: 'service-killed',
  what: 'The only process of the service is killed again and again, at any moment after it listens.',
  isShort: true,
  run: async ({ kills }) =>
    ChaosWorld.with({}, async (world) => {
      await world.start();
      return await world.underLoad(async () => {
        for (let kill = 0; kill < kills; kill += 1) {
          await waitBetween(100, 1_500);
          await world.killAndRestart();
        }
      });
    }),
};
