import { setTimeout as wait } from 'node:timers/promises';
import type { Scenario } from '../scenario.js';
import { lookAtOutage, underLoadBehindProxy } from '../support/outage.js';

const DELAY_MS = 200;
const SLOW_MS = 1_000;

export const networkSlow: Scenario = {
  name: 'network-slow',
  what: 'Everything from PostgreSQL arrives 200 ms late for a while; then nothing arrives, over connections that stay open, and later goes on.',
  isShort: true,
  run: async ({ rounds, answerMs }) =>
    underLoadBehindProxy(async (world, proxy) => {
      // Slow is no fault: whatever fails meanwhile is a problem.
      proxy.delayMs = DELAY_MS;
      await wait(rounds * SLOW_MS);
      proxy.delayMs = 0;
      for (let round = 0; round < Math.ceil(rounds / 2); round += 1) {
        await world.tally.duringFault(async () => {
          proxy.freeze();
          await lookAtOutage(world, answerMs);
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
    }),
};
