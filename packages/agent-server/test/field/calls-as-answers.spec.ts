import { describe, expect, it } from '@jest/globals';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { answersOf, codesOf, nativeAgent } from './native-agent.js';

const agent = nativeAgent();

const COMMAND = '{"command": "echo one"}';
const OBJECT = `{"name": "terminal", "arguments": ${COMMAND}}`;
const FENCED = `\`\`\`json\n${OBJECT}\n\`\`\``;

// ollama/ollama#12174, lmstudio-ai/lmstudio-bug-tracker#825, selfagency/opilot#149: the conversation ends as finished, and
// nothing is done.
describe('an answer that is nothing but a call', () => {
  it.each([
    ['Qwen Coder, a block of JSON', FENCED],
    ['Qwen Coder, two blocks', `${FENCED}\n\n${FENCED}`],
    ['bare JSON', OBJECT],
    ['JSON as of the API', `{"type": "function", "function": ${OBJECT}}`],
    ['JSON with a comma at the end', `\`\`\`json\n{"name": "terminal", "arguments": ${COMMAND},}\n\`\`\``],
    ['Hermes', `<tool_call>\n${OBJECT}\n</tool_call>`],
    ['Hermes without its end', `<tool_call>\n${OBJECT}`],
    ['two of Hermes', `<tool_call>${OBJECT}</tool_call>\n<tool_call>${OBJECT}</tool_call>`],
    [
      'Qwen 3 Coder',
      '<tool_call>\n<function=terminal>\n<parameter=command>\necho one\n</parameter>\n</function>\n</tool_call>',
    ],
    ['Llama 3.1', `<function=terminal>${COMMAND}</function>`],
    ['Llama 3.2', `<|python_tag|>{"name": "terminal", "parameters": ${COMMAND}}<|eom_id|>`],
    ['Llama 3.2 without a mark', `{"type": "function", "name": "terminal", "parameters": ${COMMAND}}`],
    ['Mistral', `[TOOL_CALLS][${OBJECT}]`],
    ['Mistral, version 11', `[TOOL_CALLS]terminal[CALL_ID]a1b2c3d4e[ARGS]${COMMAND}`],
    ['Mistral, version 13', `[TOOL_CALLS]terminal${COMMAND}`],
    ['gpt-oss', `<|channel|>commentary to=functions.terminal <|constrain|>json<|message|>${COMMAND}<|call|>`],
  ])('is that call: %s', async (_, text) => {
    const host = await agent.run(inOrder(say(text), say('Done.')));
    expect(host.status).toBe('finished');
    expect(host.ofKind('ActionEvent')[0]).toMatchObject({ action: { command: 'echo one' }, thought: [] });
    expect(JSON.stringify(agent.llm.requests[1]?.messages.at(-1))).toContain('one');
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
    ['a tool that is not there', FENCED.replace('terminal', 'shell')],
    ['other members', `{"name": "terminal", "arguments": ${COMMAND}, "version": 1}`],
    ['no arguments', '```json\n{"name": "terminal"}\n```'],
    ['a quotation mark too many', '{"name": "terminal", "arguments": {"command": "echo "one""}}'],
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
    const host = await agent.run(inOrder(say(FENCED)), { confirmationPolicy: 'always' });
    expect(host.status).toBe('waiting_for_confirmation');
    expect(host.ofKind('ObservationEvent')).toEqual([]);
  });
});
