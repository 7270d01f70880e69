import { type Attack, everywhere, held } from '../attack.js';

const REPOSITORY = 'octo/app';

export const keyOfPausedSandbox: Attack = {
  name: 'key-of-paused-sandbox',
  finding: 'not tried',
  what: 'A program that has left a sandbox of Bob with its key opens pull requests as Bob while the sandbox is paused.',
  expected: everywhere(held('the key opens none unless the sandbox runs')),
  run: async (world) => {
    const { bob, hub } = world;
    await world.giveToken(bob);
    await world.git.commit(REPOSITORY, 'main', { 'a.txt': 'a' });
    const { id } = await bob.client.started({
      sandbox_id: bob.sandboxId,
      selected_repository: REPOSITORY,
      git_provider: 'github',
    });
    const key = await bob.sessionKey();
    const before = hub.changeRequests.length;
    await bob.pause();
    const response = await fetch(`${world.url}/api/v1/webhooks/pull-requests`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Session-API-Key': key },
      body: JSON.stringify({ conversation_id: id, source_branch: 'fix/it', title: 'Mine', body: '' }),
    });
    await bob.resume();
    const opened = hub.changeRequests.length - before;
    return {
      held: opened === 0 && response.status === 401,
      seen: `answered ${response.status}; ${opened} pull requests were opened`,
    };
  },
};
