import type { Scenario } from '../scenario.js';
import { ChaosWorld } from '../support/chaos-world.js';
import { MessagesUnderFault } from '../support/messages-under-fault.js';
import { waitBetween } from '../support/pauses.js';

export const agentServersKilled: Scenario = {
  name: 'agent-servers-killed',
  what: 'Everything in a sandbox is killed while it takes messages; its user resumes it.',
  isShort: false,
  run: async ({ rounds }) =>
    ChaosWorld.with({}, async (world) => {
      await world.start();
      const messages = await MessagesUnderFault.start(world);
      return await messages.during(rounds, async () => {
        for (let round = 0; round < rounds; round += 1) {
          await waitBetween(500, 1_500);
          await messages.killSandbox();
          await messages.resumeSandbox();
        }
      });
    }),
};
