import { afterAll, beforeAll, expect, it } from '@jest/globals';
import path from 'node:path';
import { AcpEngine } from '../../src/engine/acp/acp.engine.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { say } from '../fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

const SECRETS = {
  DEPLOY_KEY: {
    kind: 'StaticSecret',
    value: 'value-of-deploy-key',
    description: 'For the\nstaging <server>',
  },
  BARE: 'value-of-bare',
  GONE: { kind: 'StaticSecret', value: null, description: 'has no value' },
};

let server: TestAgentServer;
let llm: ScriptedLlm;
beforeAll(async () => {
  llm = await ScriptedLlm.start(inOrder(say('done')));
  const environment = toolEnvironment(process.env);
  server = await startTestAgentServer({
    createEngine: async ({ kind }) =>
      kind === 'acp' ? new AcpEngine({ environment, wrapper: [] }) : new NativeEngine(),
  });
});
afterAll(async () => {
  await server.stop();
  await llm.close();
});

async function run(id: string, text: string): Promise<void> {
  await server.client.say(id, text);
  await server.client.untilStatus(id, 'finished');
}

// OpenHands/OpenHands#11857, OpenHands/software-agent-sdk#1295: the agent does not know that the user gave it secrets.
it('our agent is told the names and descriptions of its secrets, and no value', async () => {
  const id = await server.client.start({
    agent: { kind: 'Agent', llm: { model: 'openai/fake', api_key: 'llm-key', base_url: llm.url } },
    secrets: SECRETS,
  });
  await run(id, 'Hello.');
  expect(lastPrompt()).toContain('- $BARE\n- $DEPLOY_KEY: For the staging server\n');
  expect(lastPrompt()).not.toContain('GONE');
  expect(lastPrompt()).not.toContain('value-of');

  // Given again in another order, as after a restart: the prompt stays.
  const { BARE, ...others } = SECRETS;
  const again = `/api/conversations/${id}/credentials`;
  await server.client.post(again, { secrets: { ...others, BARE } });
  await run(id, 'Again.');
  expect(await prompts(id)).toBe(1);

  await server.client.post(again, { secrets: { LATER: 'value-of-later' } });
  await run(id, 'And again.');
  expect(lastPrompt()).toContain('- $LATER\n');
  expect(await prompts(id)).toBe(2);
});

it('an agent of others is told with its first message', async () => {
  const agent = path.resolve('packages/agent-server/test/fakes/acp-agents/scripted-agent.mjs');
  const id = await server.client.start({
    agent: {
      kind: 'ACPAgent',
      acp_command: [process.execPath, agent],
      acp_env: { HOME: server.folder },
    },
    secrets: SECRETS,
  });
  await run(id, 'prompt');
  const [answer] = await server.client.answers(id);
  expect(answer).toContain('- $DEPLOY_KEY: For the staging server');
  expect(answer).not.toContain('value-of');
});

it('no secrets, no words about them', async () => {
  const id = await server.client.start({
    agent: { kind: 'Agent', llm: { model: 'openai/fake', api_key: 'llm-key', base_url: llm.url } },
  });
  await run(id, 'Hello.');
  expect(lastPrompt()).not.toContain('SECRETS');
});

function lastPrompt(): unknown {
  return llm.requests.at(-1)?.messages[0]?.content;
}

async function prompts(id: string): Promise<number> {
  return (await server.client.kinds(id)).filter((kind) => kind === 'SystemPromptEvent').length;
}
