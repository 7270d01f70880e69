import { realpathSync } from 'node:fs';
import path from 'node:path';
import {
  isPostmasterOf,
  readPostmasterPid,
} from '../../../packages/embedded-postgres/src/process-identity.js';
import { until } from '../../support/until.js';
import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { waitBetween } from '../support/pauses.js';

export const embeddedPostgresKilled: Scenario = {
  name: 'embedded-postgres-killed',
  what: 'The embedded PostgreSQL is killed under a running service, which has to bring it back.',
  isShort: true,
  run: async ({ postgresKills }) =>
    ChaosWorld.with({ embedded: true }, async (world) => {
      await world.start();
      const { pid } = world.service;
      const cluster = realpathSync(path.join(world.journey.dataDir, 'postgres'));
      const outcome = await world.underLoad(async () => {
        for (let kill = 0; kill < postgresKills; kill += 1) {
          await waitBetween(200, 1_500);
          await world.tally.duringFault(async () => {
            const victim = (await readPostmasterPid(cluster))?.pid ?? 0;
            process.kill(victim, 'SIGKILL');
            await until(() => !isPostmasterOf(cluster, victim));
            await until(async () => {
              const running = await readPostmasterPid(cluster);
              return running !== null && isPostmasterOf(cluster, running.pid);
            });
            await world.untilReady();
          });
        }
      });
      if (!world.service.isRunning() || world.service.pid !== pid) {
        outcome.problems.push('the service had to be started again');
      }
      return outcome;
    }),
};
