import { chmodSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import path from 'node:path';
import { jsonList } from '@slipway/common/json-access.js';
import { JourneyWorld } from '../../system/journeys/support/journey-world.js';
import { outcomeWithout, type Scenario } from '../scenario.js';

export const twoStarts: Scenario = {
  name: 'two-starts',
  what: 'Two services start in the same moment: on one new data folder, and on two that PostgreSQL cannot reach under root.',
  isShort: false,
  run: async ({ rounds }) => {
    const problems: string[] = [];
    const times = Math.ceil(rounds / 5);
    for (let round = 0; round < times; round += 1) {
      problems.push(...(await startOnOneFolder()), ...(await startOnTwoFolders()));
    }
    return outcomeWithout(times * 2, { acknowledged: times * 3, lost: problems.length }, problems);
  },
};

/** Both are one service: what one of them stores, the other one shows. */
async function startOnOneFolder(): Promise<string[]> {
  const world = await JourneyWorld.open({ embedded: true });
  try {
    const [first, second] = await Promise.all([world.start(), world.start()]);
    await world.admin.at(first.url).post('/api/secrets', { name: 'SHARED', value: 'shared' });
    const seen = jsonList(await world.admin.at(second.url).get('/api/secrets'), 'custom_secrets').length;
    return seen === 1 ? [] : ['what one of two services stored is not at the other one'];
  } finally {
    await world.close();
  }
}

/** Under root, the databases of both are in the one folder of the system. Others have theirs at home. */
async function startOnTwoFolders(): Promise<string[]> {
  const worlds = await Promise.all([0, 1].map(() => JourneyWorld.open({ embedded: true })));
  const clusters: string[] = [];
  try {
    for (const { dataDir } of worlds) {
      mkdirSync(dataDir);
      chmodSync(dataDir, 0o700);
    }
    await Promise.all(worlds.map((world) => world.start()));
    clusters.push(...worlds.map(({ dataDir }) => realpathSync(path.join(dataDir, 'postgres'))));
    for (const world of worlds) {
      await world.admin.post('/api/secrets', { name: 'OWN', value: 'own' });
    }
    return new Set(clusters).size === 2 ? [] : ['two installations have one database'];
  } finally {
    await Promise.all(worlds.map((world) => world.close()));
    clusters.forEach((cluster) => {
      rmSync(cluster, { recursive: true, force: true, maxRetries: 10 });
      rmSync(`${cluster}-reserve`, { force: true });
    });
  }
}
