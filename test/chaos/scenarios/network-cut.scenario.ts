import { DatabaseProxy } from '../../support/database-proxy.js';
import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { ExternalPostgres, lookAtOutage } from '../support/outage.js';
import { waitBetween } from '../support/pauses.js';

export const networkCut: Scenario = {
  name: 'network-cut',
  what: 'Every connection to PostgreSQL is cut, new ones are refused for a while, and then taken again.',
  isShort: false,
  run: async ({ rounds, answerMs }) => {
    const database = await ExternalPostgres.start();
    const proxy = await DatabaseProxy.start(database.url);
    const environment = { DATABASE_URL: proxy.urlOf(database.url) };
    try {
      return await ChaosWorld.with({ database, environment }, async (world) => {
        await world.start();
        const outages: string[] = [];
        const outcome = await world.underLoad(async () => {
          for (let round = 0; round < rounds; round += 1) {
            await waitBetween(300, 1_500);
            await world.tally.duringFault(async () => {
              await proxy.goAway();
              outages.push(...(await lookAtOutage(world, answerMs)));
              await waitBetween(0, 1_500);
              await proxy.comeBack();
              await world.untilReady();
            });
          }
        });
        outcome.problems.push(...outages);
        return outcome;
      });
    } finally {
      await proxy.goAway();
    }
  },
};
