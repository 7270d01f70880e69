import { expect, it } from '@jest/globals';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeAgent, oddTools } from './native-agent.js';

// zed-industries/zed#32946, anomalyco/opencode#4909: a request with more than 128 tools is refused as a whole.

const agent = nativeAgent();

it('offers as many tools as models take, its own first, and names the others once', async () => {
  const host = await agent.run(inOrder(call('usual_139', { a: 'x' }), say('done')), {
    mcpConfig: { many: oddTools('140') },
  });
  await agent.goOn(host, 'Again.');
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
  const host = await agent.run(inOrder(say('done')), { mcpConfig: { many: oddTools('100') } });
  expect(host.ofKind('ConversationErrorEvent')).toEqual([]);
  expect(agent.llm.requests[0]?.tools).toContain('usual_099');
});
