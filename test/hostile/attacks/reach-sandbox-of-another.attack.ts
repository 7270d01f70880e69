import { type Attack, everywhere, held } from '../attack.js';

const COMMAND = { command: 'cat /proc/self/status', timeout: 5 };

export const reachSandboxOfAnother: Attack = {
  name: 'reach-sandbox-of-another',
  finding: 'held',
  what: "Bob asks Alice's agent server to run a command, with every key that he has.",
  expected: everywhere(held('401, whichever key of his he shows')),
  run: async ({ alice, bob }) => {
    const path = `/api/v1/sandboxes/${alice.sandboxId}/agent-server/api/bash/execute_bash_command`;
    const keys = [bob.client.key, await bob.sessionKey(), ''];
    const answers = await Promise.all(
      keys.map((key) => bob.send('POST', path, COMMAND, { 'X-Session-API-Key': key })),
    );
    const statuses = answers.map(({ status }) => status);
    return { held: statuses.every((status) => status === 401), seen: `statuses ${statuses.join(', ')}` };
  },
};
