import { setTimeout as wait } from 'node:timers/promises';
import { DatabaseProxy } from '../../support/database-proxy.js';
import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { ExternalPostgres, lookAtOutage } from '../support/outage.js';

const DELAY_MS = 200;
const SLOW_MS = 1_000;

export const networkSlow: Scenario = {
  name: 'network-slow',
  what: 'Everything from PostgreSQL arrives 200 ms late for a while; then nothing arrives, over connections that stay open, and later goes on.',
  isShort: true,
  run: async ({ rounds, answerMs }) => {
    const database = await ExternalPostgres.start();
    const proxy = await DatabaseProxy.start(database.url);
    const environment = { DATABASE_URL: proxy.urlOf(database.url) };
    try {
      return await ChaosWorld.with({ database, environment }, async (world) => {
        await world.start();
        const problems: string[] = [];
        const outcome = await world.underLoad(async () => {
          // Slow is no fault: whatever fails meanwhile is a problem.
          proxy.delayMs = DELAY_MS;
          await wait(rounds * SLOW_MS);
          proxy.delayMs = 0;
          for (let round = 0; round < Math.ceil(rounds / 2); round += 1) {
            await world.tally.duringFault(async () => {
              proxy.freeze();
              problems.push(...(await lookAtOutage(world, answerMs)));
              if (round % 2 === 0) {
                proxy.thaw();
              } else {
                await proxy.goAway();
                await proxy.comeBack();
              }
              await world.untilReady();
            });
            await wait(1_000);
          }
        });
        outcome.problems.push(...problems);
        return outcome;
      });
    } finally {
      await proxy.goAway();
    }
  },
};
