import type { Sighting } from '../attack.js';
import type { HostileWorld } from './hostile-world.js';

const LOOK = '/api/bash/execute_bash_command';
const COMMAND = { command: 'printenv DEPLOY_TOKEN', timeout: 5 };

/** What the key that Alice's sandbox had opens for Bob once she has started it again. */
export async function useOldKey(
  { alice, bob }: HostileWorld,
  restart: () => Promise<void>,
): Promise<Sighting> {
  const old = await alice.sessionKey();
  await restart();
  const now = await alice.sessionKey();
  const sandbox = `/api/v1/sandboxes/${alice.sandboxId}`;
  const withOld = { 'X-Session-API-Key': old };
  const answers = [
    await bob.send('POST', `${sandbox}/agent-server${LOOK}`, COMMAND, withOld),
    await bob.send('GET', `${sandbox}/settings/secrets/DEPLOY_TOKEN`, undefined, withOld),
  ];
  const statuses = answers.map(({ status }) => status);
  return {
    held: now !== old && statuses.every((status) => status === 401 || status === 403 || status === 404),
    seen: `the key is ${now === old ? 'the same' : 'another one'}; with the old one: ${statuses.join(', ')}`,
  };
}
