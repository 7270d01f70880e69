import { setTimeout as wait } from 'node:timers/promises';
import { DatabaseProxy } from '../../support/database-proxy.js';
import type { Scenario } from '../scenario.js';
import { ChaosWorld, statusOf } from '../support/chaos-world.js';
import { ExternalPostgres } from '../support/outage.js';

const DELAY_MS = 200;
const SLOW_MS = 10_000;
/** Longer than it takes until readiness gives up. */
const SILENT_MS = 6_000;

export const networkSlow: Scenario = {
  name: 'network-slow',
  what: 'Everything from PostgreSQL arrives 200 ms late for a while; then nothing arrives, over connections that stay open.',
  isShort: false,
  run: async ({ rounds }) => {
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
          await wait(SLOW_MS);
          proxy.delayMs = 0;
          for (let round = 0; round < Math.ceil(rounds / 5); round += 1) {
            await world.tally.duringFault(async () => {
              proxy.freeze();
              await wait(SILENT_MS);
              const [ready, live] = await Promise.all([
                statusOf(`${world.url}/health/ready`),
                statusOf(`${world.url}/health/live`),
              ]);
              if (ready !== 503 || live !== 200) {
                problems.push(`in silence readiness was ${ready} and liveness ${live}`);
              }
              await proxy.goAway();
              await proxy.comeBack();
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
