import { type Attack, everywhere, held } from '../attack.js';

const LOOK = '/api/bash/execute_bash_command';
const COMMAND = { command: 'printenv DEPLOY_TOKEN', timeout: 5 };

export const keyAfterResume: Attack = {
  name: 'key-after-resume',
  finding: 1,
  what: "Bob has learned the key of Alice's sandbox, and uses it after she has paused and resumed.",
  expected: everywhere(held('each start has a key of its own; the old one is answered 401')),
  run: async (world) => {
    const { alice, bob } = world;
    const old = await alice.sessionKey();
    await world.pauseWhole(alice);
    await alice.resume();
    const now = await alice.sessionKey();
    const agentServer = `/api/v1/sandboxes/${alice.sandboxId}/agent-server${LOOK}`;
    const secrets = `/api/v1/sandboxes/${alice.sandboxId}/settings/secrets/DEPLOY_TOKEN`;
    const withOld = { 'X-Session-API-Key': old };
    const answers = [
      await bob.send('POST', agentServer, COMMAND, withOld),
      await bob.send('GET', secrets, undefined, withOld),
    ];
    const statuses = answers.map(({ status }) => status);
    return {
      held: now !== old && statuses.every((status) => status === 401 || status === 403 || status === 404),
      seen: `the key is ${now === old ? 'the same' : 'another one'}; with the old one: ${statuses.join(', ')}`,
    };
  },
};
