import { setTimeout as wait } from 'node:timers/promises';
import { type Attack, held, ofService } from '../attack.js';
import { IdleConnections, signsIn } from '../support/idle-connections.js';

/** As many bodies as one caller may send at a time. */
const SOCKETS = 8;
const SIGN_INS = 5;
const SETTLE_MS = 1_000;

export const slowDeviceLogins: Attack = {
  name: 'slow-device-logins',
  finding: 'not tried',
  what: `Somebody without a key keeps ${SOCKETS} requests for the key of a device open, of whose bodies one byte arrives.`,
  expected: ofService(held('whoever signs in is answered as before')),
  run: (world) =>
    world.apart({ sandboxes: false }, async (apart) => {
      const idle = new IdleConnections(apart);
      idle.open('/oauth/device/token', 100, SOCKETS);
      await wait(SETTLE_MS);
      let signIns = 0;
      for (let count = 0; count < SIGN_INS; count += 1) {
        signIns += (await signsIn(apart)) ? 1 : 0;
      }
      const opened = idle.close();
      return {
        held: signIns === SIGN_INS,
        seen: `${signIns} of ${SIGN_INS} sign-ins; ${opened} connections were opened`,
      };
    }),
};
