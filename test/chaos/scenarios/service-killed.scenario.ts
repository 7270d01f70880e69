import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { waitBetween } from '../support/pauses.js';

export const serviceKilled: Scenario = {
  name: 'service-killed',
  what: 'The only process of the service is killed again and again, at any moment after it listens.',
  isShort: true,
  run: async ({ kills, killSeconds }) =>
    ChaosWorld.with({}, async (world) => {
      await world.start();
      return await world.underLoad(async () => {
        const deadline = performance.now() + killSeconds * 1000;
        for (let kill = 0; kill < kills && performance.now() < deadline; kill += 1) {
          await waitBetween(50, 1_000);
          await world.killAndRestart();
        }
      });
    }),
};
