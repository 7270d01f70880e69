import { randomUUID } from 'node:crypto';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { text } from '../../system/journeys/support/api-client.js';
import { type Attack, held, ofService } from '../attack.js';
import { customSecretOf } from '../support/tenant.js';

export const secretsAfterDeletion: Attack = {
  name: 'secrets-after-deletion',
  finding: 'not tried',
  what: 'A program that has the key of a sandbox of Bob, whose conversation got no secrets, goes on there after he deleted that conversation, and asks for them.',
  expected: ofService(held('the key reads as little as before')),
  run: async ({ bob: { client }, llm }) => {
    const { id, sandboxId } = await client.started({ secret_names: [], git: 'none' });
    const own = randomUUID();
    await client.agentServer(sandboxId, 'POST', '/api/conversations', {
      conversation_id: own,
      agent: {
        kind: 'Agent',
        llm: { model: 'openai/gpt-4o', base_url: llm.url, usage_id: 'agent' },
        tools: [],
      },
      workspace: { kind: 'LocalWorkspace', working_dir: 'project' },
    });
    await client.conversationIn(own, 'idle');
    const key = text(await client.sandbox(sandboxId), 'session_api_key');
    const read = async (): Promise<string[]> => {
      const headers = { 'X-Session-API-Key': key };
      const path = `/api/v1/sandboxes/${sandboxId}/settings/secrets`;
      const { body } = await client.send('GET', path, undefined, headers);
      const value = await client.send('GET', `${path}/DEPLOY_TOKEN`, undefined, headers);
      const isShown = JSON.stringify(value.body).includes(customSecretOf('Bob'));
      const names = jsonList(body, 'secrets').map((secret) => jsonText(secret, 'name') ?? '');
      return [...names, ...(isShown ? ['a value'] : [])];
    };
    const before = await read();
    await client.remove(`/api/v1/app-conversations/${id}`);
    const after = await read();
    const isAlive = jsonText(await client.sandbox(sandboxId), 'status') === 'RUNNING';
    await client.remove(`/api/v1/sandboxes/${sandboxId}`);
    if (!isAlive) {
      throw new Error('the sandbox has gone with its conversation');
    }
    return {
      held: before.length === 0 && after.length === 0,
      seen: `read before the deletion: ${before.join(', ') || 'nothing'}; after it: ${after.join(', ') || 'nothing'}`,
    };
  },
};
