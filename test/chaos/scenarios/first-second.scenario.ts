import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { outcomeWithout, type Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { waitBetween } from '../support/pauses.js';

const FIRST_MS = 1_000;

export const firstSecond: Scenario = {
  name: 'first-second',
  what: 'The service is killed in its first second: on an empty folder, where it makes its database and keys, and later.',
  isShort: false,
  run: async ({ rounds }) =>
    ChaosWorld.with({ embedded: true }, async (world) => {
      const names: string[] = [];
      for (let round = 0; round < rounds * 2; round += 1) {
        await killWhileStarting(world);
        if (round % rounds === rounds - 1) {
          await world.start();
          await world.untilReady();
          const name = `AFTER_${round}`;
          await world.journey.admin.post('/api/secrets', { name, value: name });
          names.push(name);
          await world.journey.kill(world.service);
        }
      }
      await world.start();
      await world.untilReady();
      const answer = await world.journey.admin.get('/api/secrets');
      const stored = jsonList(answer, 'custom_secrets').map((secret) => jsonText(secret, 'name'));
      const lost = names.filter((name) => !stored.includes(name));
      const problems = lost.map((name) => `secret ${name} is missing`);
      const counts = { acknowledged: names.length, lost: lost.length };
      return outcomeWithout(rounds * 2 + names.length, counts, problems);
    }),
};

async function killWhileStarting(world: ChaosWorld): Promise<void> {
  let killed: Promise<void> = Promise.resolve();
  const starting = world.start((pid) => {
    killed = killSoon(pid);
  });
  // It has ended before it listened, or soon after.
  await starting.catch(() => undefined);
  await killed;
}

async function killSoon(pid: number): Promise<void> {
  await waitBetween(0, FIRST_MS);
  process.kill(pid, 'SIGKILL');
}
