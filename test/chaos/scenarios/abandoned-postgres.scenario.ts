import { realpathSync } from 'node:fs';
import path from 'node:path';
import { jsonList } from '@slipway/common/json-access.js';
import {
  isPostmasterOf,
  readPostmasterPid,
} from '../../../packages/embedded-postgres/src/process-identity.js';
import { until } from '../../support/until.js';
import { outcomeWithout, type Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';

export const abandonedPostgres: Scenario = {
  name: 'abandoned-postgres',
  what: 'The only service of an embedded PostgreSQL is killed and does not come back: the database has to end by itself.',
  isShort: false,
  run: async () =>
    ChaosWorld.with({ embedded: true }, async (world) => {
      await world.start();
      await world.journey.admin.post('/api/secrets', { name: 'KEPT', value: 'kept' });
      const cluster = realpathSync(path.join(world.journey.dataDir, 'postgres'));
      const { pid = 0 } = (await readPostmasterPid(cluster)) ?? {};
      await world.journey.kill(world.service);
      const before = performance.now();
      await until(() => !isPostmasterOf(cluster, pid));
      const seconds = Math.round((performance.now() - before) / 1000);
      await world.start();
      await world.untilReady();
      const stored = jsonList(await world.journey.admin.get('/api/secrets'), 'custom_secrets').length;
      return outcomeWithout(
        1,
        { acknowledged: 1, lost: 1 - stored },
        stored === 1 ? [] : ['the secret is missing'],
        [`it ended ${seconds} s after the service`],
      );
    }),
};
