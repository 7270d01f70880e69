import { type Attack, held, ofService } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const LOGINS = 60;
/** Device logins of one address that may wait. */
const MOST = 50;

export const forwardedAddresses: Attack = {
  name: 'forwarded-addresses',
  finding: 'not tried',
  what: `A stranger begins ${LOGINS} device logins through the proxy in front of the service, and ${LOGINS} past any, each with another forged X-Forwarded-For.`,
  expected: ofService(
    held(
      'only the stranger is refused: others behind the proxy are not, and forged addresses are not believed',
    ),
  ),
  run: async (world) => {
    const behind = await world.apart(
      { environment: { TRUSTED_PROXIES: '127.0.0.1' }, sandboxes: false },
      async (apart) => {
        const begun = await begin(apart, (index) => `192.0.2.${index}, 203.0.113.1`);
        return { begun, other: (await begin(apart, () => '203.0.113.2', 1)) === 1 };
      },
    );
    const forged = await world.apart({ sandboxes: false }, (apart) =>
      begin(apart, (index) => `192.0.2.${index}`),
    );
    return {
      held: behind.begun === MOST && behind.other && forged === MOST,
      seen: `${behind.begun} of ${LOGINS} logins of a stranger behind a proxy began, then ${behind.other ? 'one' : 'none'} of another; ${forged} of ${LOGINS} with forged addresses`,
    };
  },
};

/** @returns how many began */
async function begin(
  { url }: HostileWorld,
  forwarded: (index: number) => string,
  count = LOGINS,
): Promise<number> {
  let begun = 0;
  for (let index = 0; index < count; index += 1) {
    const headers = { 'X-Forwarded-For': forwarded(index) };
    const response = await fetch(`${url}/oauth/device/authorize`, { method: 'POST', headers });
    await response.arrayBuffer();
    begun += response.ok ? 1 : 0;
  }
  return begun;
}
