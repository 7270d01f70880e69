import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ClusterAccess, missingForCluster, TestCluster } from '../../kubernetes/support/test-cluster.js';
import { NotTried, type Outcome, type Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { waitBetween } from '../support/pauses.js';

const KUBECONFIG = process.env['KUBECONFIG'] ?? '';
/** Requests that the API server refuses in a round. */
const REFUSALS = 4;

export const kubernetesAway: Scenario = {
  name: 'kubernetes-away',
  what: 'The API server of the cluster of KUBECONFIG goes away while pods start, and comes back; then it refuses, delays, forgets and cuts.',
  isShort: false,
  run: async ({ rounds }) => {
    const missing = await missingForCluster(KUBECONFIG);
    if (missing !== null) {
      throw new NotTried(missing);
    }
    const cluster = await TestCluster.open(KUBECONFIG);
    const folder = await mkdtemp(path.join(tmpdir(), 'chaos-kubernetes-'));
    try {
      return await damage(cluster, await cluster.access(folder), rounds);
    } finally {
      await cluster.close();
      await rm(folder, { recursive: true, maxRetries: 10 });
    }
  },
};

async function damage(cluster: TestCluster, access: ClusterAccess, rounds: number): Promise<Outcome> {
  const environment = { ...cluster.variables(access), ...(await cluster.variablesOfProcess()) };
  const countLeftOver = async (): Promise<number> => (await cluster.remains(access.namespace)).length;
  return await ChaosWorld.with({ environment, host: cluster.hostAddress, countLeftOver }, async (world) => {
    await world.start();
    const outcome = await world.underLoad(async () => {
      for (let round = 0; round < rounds; round += 1) {
        await waitBetween(500, 3_000);
        await world.tally.duringFault(async () => {
          await access.proxy.goAway();
          await waitBetween(500, 8_000);
          await access.proxy.comeBack();
        });
        await waitBetween(500, 3_000);
        await world.tally.duringFault(() => mistreat(access));
      }
    });
    // Pods are reached at their addresses then, so nothing that clients ask for needs the API server.
    if (cluster.reachesPods && world.tally.lostAtFaults > 0) {
      outcome.problems.push(`${world.tally.lostAtFaults} requests failed while only the API server was away`);
    }
    return outcome;
  });
}

/** All that an API server does which is there, and yet of little help. */
async function mistreat({ proxy }: ClusterAccess): Promise<void> {
  proxy.delay(100);
  proxy.answer(429, 'TooManyRequests', { times: REFUSALS, headers: { 'retry-after': '1' } });
  proxy.answer(409, 'Conflict', { times: REFUSALS, match: ({ verb }) => verb === 'patch' });
  proxy.answer(500, 'InternalError', { times: REFUSALS, match: ({ verb }) => verb === 'create' });
  proxy.answer(410, 'Expired', { times: REFUSALS, match: ({ verb }) => verb === 'watch' });
  proxy.cut();
  await waitBetween(500, 3_000);
  proxy.cut();
  await waitBetween(500, 3_000);
  proxy.heal();
}
