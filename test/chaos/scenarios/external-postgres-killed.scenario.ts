import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { ExternalPostgres, lookAtOutage } from '../support/outage.js';
import { waitBetween } from '../support/pauses.js';

export const externalPostgresKilled: Scenario = {
  name: 'external-postgres-killed',
  what: 'A PostgreSQL that somebody else runs is killed, stays away for a while, and comes back.',
  isShort: false,
  run: async ({ postgresKills, answerMs }) => {
    const database = await ExternalPostgres.start();
    // The world drops it when it closes.
    return await ChaosWorld.with({ database }, async (world) => {
      await world.start();
      return await world.underLoad(async () => {
        for (let kill = 0; kill < postgresKills; kill += 1) {
          await waitBetween(300, 1_500);
          await world.tally.duringFault(async () => {
            await database.kill();
            await lookAtOutage(world, answerMs);
            await database.comeBack();
            await world.untilReady();
          });
        }
      });
    });
  },
};
