import { expect, it } from '@jest/globals';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, nativeAgent } from './native-agent.js';

const agent = nativeAgent();

// open-webui/open-webui#9808, ItzCrazyKns/Vane#1034, langchain-ai/langchainjs#9726. The fake cuts tags into pieces.
it('reasoning in tags is kept apart, before a call too, closed or not', async () => {
  const calls = ['<think>Look first.</think>', '<think>Look first.'].map((text) =>
    call('think', { thought: 'x' }, { text }),
  );
  const host = await agent.run(inOrder(...calls, say('<think>\nLet me plan.\n</think>\n\nAll is well.')));
  expect(host.ofKind('ActionEvent')).toMatchObject(
    calls.map(() => ({ thought: [], reasoning_content: 'Look first.' })),
  );
  expect(answersOf(host)).toEqual(['All is well.']);
  expect(host.ofKind('MessageEvent').at(-1)?.llm_message.reasoning_content).toBe('Let me plan.');
  await agent.goOn(host, 'And now?');
  const contents = agent.llm.requests.at(-1)?.messages.map(({ content }) => content);
  expect(contents).toContain('All is well.');
  expect(contents).not.toContainEqual(expect.stringContaining('<think>'));
});
