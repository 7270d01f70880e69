import { setTimeout as wait } from 'node:timers/promises';
import { type Attack, held, ofService } from '../attack.js';
import { IdleConnections, signsIn } from '../support/idle-connections.js';
import { described, quantile, ResponseTimes } from '../support/response-times.js';

/** As many bodies as one caller may send at a time. */
const SOCKETS = 8;
const SIGN_INS = 100;
const MAX_SIGN_IN_MS = 250;
const MAX_GROWTH_MIB = 300;
const SETTLE_MS = 1_000;

export const slowDeviceLogins: Attack = {
  name: 'slow-device-logins',
  finding: 'not tried',
  timed: true,
  what: `Somebody without a key keeps ${SOCKETS} requests for the key of a device open, of whose bodies one byte arrives.`,
  expected: ofService(
    held('99 of 100 who sign in are let in within 250 ms, and others are answered as fast'),
  ),
  run: (world) =>
    world.apart({ sandboxes: false }, async (apart) => {
      const idle = new IdleConnections(apart);
      idle.open('/oauth/device/token', 100, SOCKETS);
      await wait(SETTLE_MS);
      const times = ResponseTimes.watch(apart);
      const waits: number[] = [];
      for (let count = 0; count < SIGN_INS; count += 1) {
        const since = performance.now();
        waits.push(...((await signsIn(apart)) ? [performance.now() - since] : []));
      }
      const opened = idle.close();
      const others = await times.end(MAX_GROWTH_MIB);
      return {
        held: waits.length === SIGN_INS && quantile(waits, 0.99) < MAX_SIGN_IN_MS && others.held,
        seen: `${waits.length} of ${SIGN_INS} sign-ins, ${described(waits)}; ${opened} connections were opened; ${others.seen}`,
      };
    }),
};
