import { type Attack, everywhere, held } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const LOOK = '/api/bash/execute_bash_command';
const COMMAND = { command: 'printenv DEPLOY_TOKEN', timeout: 5 };

export const keyAfterResume: Attack = {
  name: 'key-after-resume',
  finding: 1,
  what: "Bob has learned the key of Alice's sandbox, and uses it after she has paused and resumed, at once and when her program has ended.",
  expected: everywhere(held('each start has a key of its own; the old one is answered 401')),
  run: async (world) => {
    const { alice } = world;
    const statuses = [
      ...(await withOldKey(world, () => alice.pause())),
      ...(await withOldKey(world, () => world.pauseWhole(alice))),
    ];
    return {
      held: statuses.every((status) => [401, 403, 404].includes(status)),
      seen: `with the old keys: ${statuses.join(', ')}`,
    };
  },
};

/** How Bob is answered once the sandbox runs again. */
async function withOldKey({ alice, bob }: HostileWorld, pause: () => Promise<void>): Promise<number[]> {
  const old = { 'X-Session-API-Key': await alice.sessionKey() };
  await pause();
  await alice.resume();
  const sandbox = `/api/v1/sandboxes/${alice.sandboxId}`;
  const answers = [
    await bob.send('POST', `${sandbox}/agent-server${LOOK}`, COMMAND, old),
    await bob.send('GET', `${sandbox}/settings/secrets/DEPLOY_TOKEN`, undefined, old),
  ];
  return answers.map(({ status }) => status);
}
