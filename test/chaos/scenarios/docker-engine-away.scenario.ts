import { countContainers, missingFor, removeContainers, setupOf } from '../../hostile/support/backends.js';
import { engineRelay } from '../../support/engine-address.js';
import { NotTried, type Scenario } from '../scenario.js';
import { ChaosWorld, statusOf } from '../support/chaos-world.js';
import { waitBetween } from '../support/pauses.js';

export const dockerEngineAway: Scenario = {
  name: 'docker-engine-away',
  what: 'The Docker engine is away for seconds while containers run, start and are removed.',
  isShort: false,
  run: async ({ rounds }) => {
    const missing = await missingFor('docker');
    if (missing !== null) {
      throw new NotTried(missing);
    }
    const { environment, host } = await setupOf('docker');
    const relay = await engineRelay(environment['DOCKER_HOST'] ?? null);
    const options = {
      host,
      environment: { ...environment, DOCKER_HOST: `tcp://127.0.0.1:${relay.port}` },
      countLeftOver: countContainers,
    };
    try {
      return await ChaosWorld.with(options, async (world) => {
        try {
          await world.start();
          return await world.underLoad(async () => {
            for (let round = 0; round < rounds; round += 1) {
              await waitBetween(500, 3_000);
              await world.tally.duringFault(async () => {
                await relay.goAway();
                await waitBetween(500, 4_000);
                await lookAtOutage(world);
                await relay.comeBack();
                await world.untilReady();
              });
            }
          });
        } finally {
          await removeContainers(world.journey.instanceId);
        }
      });
    } finally {
      await relay.goAway();
    }
  },
};

/** What needs no sandbox goes on. */
async function lookAtOutage({ url, journey, problems }: ChaosWorld): Promise<void> {
  const headers = { 'X-Session-API-Key': journey.adminKey };
  const paths = [
    '/health/live',
    '/api/secrets',
    '/api/v1/sandboxes/search',
    '/api/v1/app-conversations/search',
  ];
  const statuses = await Promise.all(paths.map(async (path) => await statusOf(`${url}${path}`, headers)));
  problems.push(
    ...paths.flatMap((path, index) =>
      statuses[index] === 200 ? [] : [`without the engine ${path} was answered ${statuses[index]}`],
    ),
  );
}
