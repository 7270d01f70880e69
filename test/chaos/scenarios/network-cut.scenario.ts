import type { Scenario } from '../scenario.js';
import { lookAtOutage, underLoadBehindProxy } from '../support/outage.js';
import { waitBetween } from '../support/pauses.js';

export const networkCut: Scenario = {
  name: 'network-cut',
  what: 'Every connection to PostgreSQL is cut, new ones are refused for a while, and then taken again.',
  isShort: false,
  run: async ({ rounds, answerMs }) =>
    underLoadBehindProxy(async (world, proxy) => {
      for (let round = 0; round < rounds; round += 1) {
        await waitBetween(300, 1_500);
        await world.tally.duringFault(async () => {
          await proxy.goAway();
          await lookAtOutage(world, answerMs);
          await waitBetween(0, 1_500);
          await proxy.comeBack();
          await world.untilReady();
        });
      }
    }),
};
