import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { Load } from '../rolling/load.js';
import { LocalReplicas } from '../rolling/local-replicas.js';
import { Tally } from '../rolling/tally.js';
import { JourneyWorld } from './journeys/support/journey-world.js';

jest.setTimeout(300_000);

let world: JourneyWorld;
let replicas: LocalReplicas;

beforeAll(async () => {
  world = await JourneyWorld.open();
  replicas = await LocalReplicas.start(world, 2);
});

afterAll(async () => {
  await replicas.close();
  await world.close();
});

it('clients lose nothing when replicas are restarted one by one, and no more than was under way when one is killed', async () => {
  const tally = new Tally();
  const load = await Load.prepare(
    {
      url: replicas.url,
      adminKey: world.adminKey,
      settings: world.modelSettings(),
      gitToken: world.hub.token,
    },
    tally,
  );
  const { problems, lines } = await load.during(async () => {
    await replicas.restart(0);
    await replicas.restart(1);
    await replicas.kill(0, tally);
  });
  await load.close();

  expect({ problems, lines }).toEqual({ problems: [], lines });
});
