import { describe, expect, it } from '@jest/globals';
import type { ModelParameters } from '@slipway/agent-protocol/conversation-schemas.js';
import { call, endsWith, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, codesOf, expectDone, expectTold, nativeAgent } from './native-agent.js';
import { textOfCall } from '../../src/engine/native/text-tools.js';

const agent = nativeAgent();

const COMMAND = '{"thought": "one"}';
const OBJECT = `{"name": "think", "arguments": ${COMMAND}}`;
const FENCED = `\`\`\`json\n${OBJECT}\n\`\`\``;

// ollama/ollama#12174, lmstudio-ai/lmstudio-bug-tracker#825, selfagency/opilot#149: the conversation ends as finished, and
// nothing is done.
describe('an answer that is nothing but a call', () => {
  it.each([
    ['Qwen Coder, a block of JSON', FENCED],
    ['Qwen Coder, two blocks', `${FENCED}\n\n${FENCED}`],
    ['bare JSON', OBJECT],
    ['JSON as of the API', `{"type": "function", "function": ${OBJECT}}`],
    ['JSON with a comma at the end', `\`\`\`json\n{"name": "think", "arguments": ${COMMAND},}\n\`\`\``],
    ['Hermes', `<tool_call>\n${OBJECT}\n</tool_call>`],
    ['Hermes without its end', `<tool_call>\n${OBJECT}`],
    ['two of Hermes', `<tool_call>${OBJECT}</tool_call>\n<tool_call>${OBJECT}</tool_call>`],
    [
      'Qwen 3 Coder',
      '<tool_call>\n<function=think>\n<parameter=thought>\none\n</parameter>\n</function>\n</tool_call>',
    ],
    ['Llama 3.1', `<function=think>${COMMAND}</function>`],
    ['Llama 3.2', `<|python_tag|>{"name": "think", "parameters": ${COMMAND}}<|eom_id|>`],
    ['Llama 3.2 without a mark', `{"type": "function", "name": "think", "parameters": ${COMMAND}}`],
    ['Mistral', `[TOOL_CALLS][${OBJECT}]`],
    ['Mistral, version 11', `[TOOL_CALLS]think[CALL_ID]a1b2c3d4e[ARGS]${COMMAND}`],
    ['Mistral, version 13', `[TOOL_CALLS]think${COMMAND}`],
    ['gpt-oss', `<|channel|>commentary to=functions.think <|constrain|>json<|message|>${COMMAND}<|call|>`],
  ])('is that call: %s', async (_, text) => {
    const host = await agent.run(inOrder(say(text), say('Done.')));
    expect(host.status).toBe('finished');
    expect(host.ofKind('ActionEvent')[0]).toMatchObject({ action: { thought: 'one' }, thought: [] });
    expect(agent.llm.requests[1]?.messages.at(-1)).toMatchObject({ role: 'tool' });
    expect(answersOf(host)).toEqual(['Done.']);
    expect(codesOf(host)).toEqual([]);
    expect(agent.llm.refusals).toEqual([]);
  });

  it('is told, once, from the second one on, with the better choice', async () => {
    const host = await agent.run(inOrder(say(FENCED), say(OBJECT), say(FENCED), say('Done.')));
    expect(host.ofKind('ActionEvent')).toHaveLength(3);
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      { code: 'TextToolCalls', detail: expect.stringContaining('native_tool_calling') },
    ]);
  });

  it.each([
    ['words before it', `I would call:\n\n${FENCED}`],
    ['words behind it', `${FENCED}\nThat is how.`],
    ['a tool that is not there', FENCED.replace('think', 'shell')],
    ['other members', `{"name": "think", "arguments": ${COMMAND}, "version": 1}`],
    ['no arguments', '```json\n{"name": "think"}\n```'],
    ['a quotation mark too many', '{"name": "think", "arguments": {"thought": "say "one""}}'],
  ])('is an answer with %s', async (_, text) => {
    const host = await agent.run(inOrder(say(text)));
    expect(host.status).toBe('finished');
    expect(host.ofKind('ActionEvent')).toEqual([]);
    expect(answersOf(host)).toEqual([text]);
  });

  it('is an answer as well once the model has made a call of its own', async () => {
    const host = await agent.run(inOrder(call('think', { thought: 'x' }), say(FENCED)));
    expect(host.ofKind('ObservationEvent')).toHaveLength(1);
    expect(answersOf(host)).toEqual([FENCED]);
  });

  it('waits for confirmation like any other', async () => {
    const inShell = FENCED.replace('think', 'terminal').replace('thought', 'command');
    const host = await agent.run(inOrder(say(inShell)), { confirmationPolicy: 'always' });
    expect(host.status).toBe('waiting_for_confirmation');
    expect(host.ofKind('ObservationEvent')).toEqual([]);
  });
});

const inText = (parameters: ModelParameters = {}) => ({
  llm: {
    model: 'openai/scripted',
    apiKey: 'key-of-the-model',
    baseUrl: agent.llm.url,
    parameters: { native_tool_calling: false, ...parameters },
  },
});
const run = (command: string): string => textOfCall('terminal', { command });

// ollama/ollama#14745, continuedev/continue#13057: the run ends as finished with a call that nothing has run.
describe('a call that is left in the text of an answer', () => {
  const CALLS = [
    '<tool_call>\n{"name": "terminal", "arguments": {"command": "ls"}}\n</tool_call>',
    '<tool_call>\n<function=terminal>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>',
    '<|channel|>commentary to=functions.terminal <|constrain|>json<|message|>{"command":"ls"}<|call|>',
    '[TOOL_CALLS]terminal{"command": "ls"}',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>terminal',
  ].map((mark) => `Let me look.\n${mark}`);
  it.each(CALLS)('is asked for again: %s', async (text) => {
    const host = await agent.run(
      inOrder(say(text), call('think', { thought: 'x' }), say(text), say('Done.')),
    );
    expect(host.status).toBe('finished');
    expect(answersOf(host).at(-1)).toBe('Done.');
    expect(codesOf(host)).toEqual([]);
    expect(JSON.stringify(agent.llm.requests[1]?.messages.at(-1))).toContain('runs nothing');
  });

  it('is asked for once it is complete', async () => {
    const cut = endsWith('length', { text: CALLS[0] ?? '' });
    const host = await agent.run(inOrder(cut, say(CALLS[0] ?? ''), say('Done.')));
    expectDone(host);
  });

  it('is told, with what to do, when the model makes no other', async () => {
    const host = await agent.run(() => say(CALLS[0] ?? ''));
    expect(agent.llm.requests).toHaveLength(2);
    expectTold(host, 'LlmCallInText', 'native_tool_calling');
  });

  it.each([
    'Qwen writes `<tool_call>` for that.',
    'So:\n\n```xml\n<tool_call>\n{}\n</tool_call>\n```\nDone.',
  ])('is none where it is only spoken of: %s', async (text) => {
    const host = await agent.run(inOrder(say(text)));
    expect(host.status).toBe('finished');
    expect(agent.llm.requests).toHaveLength(1);
  });
});

// OpenHands/OpenHands#8956, #14807, jundot/omlx#3153: models without function calling, and those that write their calls
// into the answer.
describe('a model without function calling', () => {
  it('is told of the tools, calls them in text, and reads results as messages', async () => {
    const host = await agent.run(
      inOrder(say(`I look.\n\n${run('echo one; exit 3')}`), say(textOfCall('finish', { message: 'Done.' }))),
      inText(),
    );
    expect(host.status).toBe('finished');
    expect(host.ofKind('ActionEvent')).toMatchObject([
      { thought: [{ text: 'I look.' }], action: { kind: 'TerminalAction', command: 'echo one; exit 3' } },
      { action: { kind: 'FinishAction', message: 'Done.' } },
    ]);
    const [first, second] = agent.llm.requests;
    expect([first?.body['tools'], first?.body['tool_choice'], first?.body['stop']]).toEqual([
      undefined,
      undefined,
      ['EXECUTION RESULT of ['],
    ]);
    expect(first?.messages[0]?.content).toContain('<tool name="terminal">');
    expect(second?.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    expect(second?.messages[2]?.content).toBe(`I look.\n\n${run('echo one; exit 3')}`);
    expect(JSON.stringify(second?.messages[3]?.content)).toContain('EXECUTION RESULT of [terminal]:\\none');
  });

  it('may make several calls, and joins what the user says to their results', async () => {
    const host = await agent.run(
      inOrder(
        say(`${run('echo one')}\n${run('echo two')}\nEXECUTION RESULT of [terminal]:\nnine`),
        say('There.'),
      ),
      inText(),
    );
    expect(host.ofKind('ObservationEvent')).toHaveLength(2);
    await agent.goOn(host, 'And now?');
    const last = agent.llm.requests.at(-1);
    expect(last?.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ]);
    expect(JSON.stringify(last?.messages)).not.toContain('nine');
    expect(answersOf(host).slice(0, 1)).toEqual(['There.']);
  });

  it('is told what is wrong with a call', async () => {
    const host = await agent.run(
      inOrder(
        say(textOfCall('shell', { command: 'ls' })),
        say(textOfCall('terminal', {})),
        say('<function=terminal>\n<parameter=command>echo half a com'),
        say('Sorry.'),
      ),
      inText(),
    );
    expect(host.ofKind('AgentErrorEvent').map(({ error }) => error)).toEqual([
      expect.stringContaining('There is no tool shell'),
      expect.stringContaining('The arguments of terminal are invalid'),
      expect.stringContaining('<function=terminal>'),
    ]);
    expect(JSON.stringify(agent.llm.requests[1]?.messages.at(-1))).toContain('There is no tool shell');
    expect(host.status).toBe('finished');
  });

  it('gets no stop sequence where that is switched off', async () => {
    await agent.run(inOrder(say('Ok.')), inText({ disable_stop_word: true }));
    expect(agent.llm.requests[0]?.body['stop']).toBeUndefined();
  });

  it("may be one of Anthropic's own API", async () => {
    const parameters = { native_tool_calling: false, extended_thinking_budget: 2_000 };
    const answers = [{ text: run('echo one') }, { text: 'Done.' }];
    const { host, claude } = await agent.runAtAnthropic(answers, { llm: { parameters } });
    expect(host.ofKind('ObservationEvent')).toHaveLength(1);
    expect(claude.requests[1]?.body).toMatchObject({
      thinking: { type: 'enabled', budget_tokens: 2_000 },
      stop_sequences: ['EXECUTION RESULT of ['],
      messages: [{ role: 'user' }, { role: 'assistant' }, { role: 'user' }],
    });
    expect(claude.requests[1]?.body).not.toHaveProperty('tools');
  });
});

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
