import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, NativeAgent } from './native-agent.js';

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
});
afterAll(async () => {
  await agent.close();
});

// open-webui/open-webui#9808, ItzCrazyKns/Vane#1034, langchain-ai/langchainjs#9726. The fake cuts tags into pieces.
it.each([
  ['<think>Let me plan.</think>All is well.', 'All is well.'],
  ['<think>\nLet me plan.\n</think>\n\nAll is well.', 'All is well.'],
  ['Let me plan.\n</think>\n\nAll is well.', 'All is well.'],
])('reasoning in tags is kept apart: %j', async (text, answer) => {
  const host = await agent.run(inOrder(say(text)));
  expect(answersOf(host)).toEqual([answer]);
  expect(host.ofKind('MessageEvent').at(-1)?.llm_message.reasoning_content).toBe('Let me plan.');
  await host.say('And now?');
  await agent.goOn(host);
  const [, , replayed] = agent.llm.requests.at(-1)?.messages ?? [];
  expect(replayed).toMatchObject({ role: 'assistant', content: answer });
});

it('reasoning in tags before a call is kept apart, closed or not', async () => {
  const calls = ['<think>Look first.</think>', '<think>Look first.'].map((text) =>
    call('think', { thought: 'x' }, { text }),
  );
  const host = await agent.run(inOrder(...calls, say('done')));
  expect(host.ofKind('ActionEvent')).toMatchObject(
    calls.map(() => ({ thought: [], reasoning_content: 'Look first.' })),
  );
  expect(agent.llm.requests[2]?.messages.map(({ content }) => content)).not.toContainEqual(
    expect.stringContaining('<think>'),
  );
});
