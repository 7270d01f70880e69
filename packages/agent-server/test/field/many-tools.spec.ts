import { afterAll, beforeAll, expect, it } from '@jest/globals';
import path from 'node:path';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { NativeAgent } from './native-agent.js';

// zed-industries/zed#32946, anomalyco/opencode#4909: a request with more than 128 tools is refused as a whole.

const manyTools = (count: number) => ({
  command: process.execPath,
  args: [path.resolve('packages/agent-server/test/fakes/mcp-servers/odd-tools-server.mjs'), String(count)],
});

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
});
afterAll(async () => {
  await agent.close();
});

it('offers as many tools as models take, its own first, and names the others once', async () => {
  const host = await agent.run(inOrder(call('usual_139', { a: 'x' }), say('done')), {
    mcpConfig: { many: manyTools(140) },
  });
  await host.say('Again.');
  await agent.goOn(host);
  expect(agent.llm.refusals).toEqual([]);
  const offered = agent.llm.requests[0]?.tools ?? [];
  expect(offered).toHaveLength(128);
  expect(offered).toEqual(expect.arrayContaining(['terminal', 'finish', 'usual_000']));
  const told = host.ofKind('ConversationErrorEvent');
  expect(told).toMatchObject([{ source: 'environment', code: 'ToolsLeftOut' }]);
  const leftOut = Array.from({ length: 140 }, (_, index) => `usual_${String(index).padStart(3, '0')}`);
  const missing = leftOut.filter((name) => !offered.includes(name));
  expect(missing.length).toBeGreaterThan(12);
  expect(told[0]?.detail).toContain(`Left out: ${missing.join(', ')}.`);
  expect(host.ofKind('AgentErrorEvent')).toMatchObject([{ error: expect.stringContaining('usual_139') }]);
  expect(host.status).toBe('finished');
});

it('says nothing of what models take', async () => {
  const host = await agent.run(inOrder(say('done')), { mcpConfig: { many: manyTools(100) } });
  expect(host.ofKind('ConversationErrorEvent')).toEqual([]);
  expect(agent.llm.requests[0]?.tools).toContain('usual_099');
});
