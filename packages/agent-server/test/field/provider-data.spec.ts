import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { ScriptedAnthropic } from '../fakes/scripted-anthropic.js';
import { call, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { type ChatMessage, inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { sealed } from '../fakes/scripted-responses.js';
import { startRequest, startWithModelAt } from '../support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

// https://github.com/earendil-works/pi/issues/6733: `extra_content` of a call is dropped, and Gemini refuses the next request.
// https://github.com/anomalyco/opencode/issues/24124: `reasoning_content` is dropped, and DeepSeek refuses the second turn.

const SIGNED = { extra_content: { vertex: { thought_signature: 'AY89a18IwQsQ8in/' } } };
const THINK = { thought: 'hm' };

let server: TestAgentServer;
let llm: ScriptedLlm;
let other: ScriptedLlm;

beforeEach(async () => {
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
  other = await ScriptedLlm.start(inOrder(say('From elsewhere.')));
});

afterEach(async () => {
  await server.stop();
  await llm.close();
  await other.close();
});

async function startWith(...answers: ScriptedAnswer[]): Promise<string> {
  llm = await ScriptedLlm.start(inOrder(...answers));
  return await server.client.start(startWithModelAt(llm.url));
}

async function talk(id: string): Promise<void> {
  await server.client.say(id, 'Go on.');
  await server.client.untilStatus(id, 'finished');
}

async function moveTo(id: string, url: string, model = 'openai/fake'): Promise<void> {
  await server.client.post(`/api/conversations/${id}/credentials`, {
    llm_model: model,
    llm_base_url: url,
    llm_api_key: 'llm-key-5519',
  });
}

const answersIn = (model: ScriptedLlm): ChatMessage[] =>
  (model.requests.at(-1)?.messages ?? []).filter(({ role }) => role === 'assistant');

const callsIn = (model: ScriptedLlm) => answersIn(model).flatMap(({ tool_calls: all }) => all ?? []);

describe('opaque data of a provider', () => {
  it('goes back with its call, after a restart too, and to no other model', async () => {
    const second = { ...call('think', THINK), calls: [{ name: 'think', arguments: THINK }] };
    const id = await startWith(
      { kind: 'answer', calls: [{ name: 'think', arguments: THINK, members: SIGNED }, ...second.calls] },
      say('Done.'),
    );
    await talk(id);
    expect(callsIn(llm)).toMatchObject([SIGNED, {}]);
    expect(callsIn(llm)[1]).not.toHaveProperty('extra_content');
    expect(JSON.stringify(await server.client.events(id))).not.toContain('thought_signature');

    await server.restart();
    await moveTo(id, llm.url);
    await talk(id);
    expect(callsIn(llm)[0]).toMatchObject(SIGNED);

    await moveTo(id, llm.url, 'openai/another');
    await talk(id);
    await moveTo(id, other.url);
    await talk(id);
    for (const model of [llm, other]) {
      expect(callsIn(model)).toHaveLength(2);
      expect(JSON.stringify(callsIn(model))).not.toContain('thought_signature');
    }
    await moveTo(id, llm.url);
    await talk(id);
    expect(callsIn(llm)[0]).toMatchObject(SIGNED);
  });

  it('goes back to the Responses API as an item, after a restart too, and to no other model', async () => {
    const calls = [{ name: 'think', arguments: THINK }];
    const id = await startWith({ kind: 'answer', reasoning: 'Hm.', calls }, say('Done.'));
    const items = () =>
      jsonList(llm.requests.at(-1)?.body, 'input').flatMap(
        (item) => jsonText(item, 'encrypted_content') ?? [],
      );
    await moveTo(id, llm.url, 'openai/responses/fake');
    await talk(id);
    expect(items()).toEqual([sealed('rs_0')]);
    expect(JSON.stringify(await server.client.events(id))).not.toContain('gAAA');

    await server.restart();
    await moveTo(id, llm.url, 'openai/responses/fake');
    await talk(id);
    expect(items()).toEqual([sealed('rs_0')]);

    await moveTo(id, llm.url, 'openai/responses/another');
    await talk(id);
    expect(items()).toEqual([]);
    await moveTo(id, llm.url);
    await talk(id);
    expect(JSON.stringify(llm.requests.at(-1)?.body)).not.toContain('gAAA');
    expect(llm.refusals).toEqual([]);
  });

  it('goes back with its message, joined from its pieces', async () => {
    const details = [
      { type: 'reasoning.text', text: 'Let me ', index: 0, format: null },
      { type: 'reasoning.text', text: 'see.', index: 0, signature: 'signed' },
    ];
    const id = await startWith(
      {
        kind: 'answer',
        members: { reasoning_details: details },
        calls: [{ name: 'think', arguments: THINK }],
      },
      say('Done.'),
    );
    await talk(id);
    expect(answersIn(llm)[0]).toMatchObject({
      reasoning_details: [{ type: 'reasoning.text', text: 'Let me see.', index: 0, signature: 'signed' }],
    });
  });

  it('of Anthropic goes back in its place', async () => {
    llm = await ScriptedLlm.start(inOrder(say('unused')));
    const claude = await ScriptedAnthropic.start([
      {
        thinking: 'Hm.',
        text: 'I think.',
        call: { id: 'toolu_1', name: 'think', input: THINK },
        usage: { input: 1, output: 1 },
      },
      { text: 'Done.', usage: { input: 1, output: 1 } },
    ]);
    await server.restart({ createEngine: async () => new NativeEngine({ anthropicUrl: claude.url }) });
    const agent = { kind: 'Agent', llm: { model: 'anthropic/claude', api_key: 'llm-key-5519' } };
    const id = await server.client.start(startRequest({ agent }));
    await talk(id);
    await talk(id);
    const sent = jsonList(claude.requests.at(-1)?.body, 'messages').map((message) =>
      jsonList(message, 'content'),
    );
    await claude.close();
    expect(claude.refusals).toEqual([]);
    expect(sent[1]).toMatchObject([
      { type: 'thinking', thinking: 'Hm.', signature: 'signed' },
      { type: 'text', text: 'I think.' },
      { type: 'tool_use', id: 'toolu_1' },
    ]);
    expect(sent.map((content) => jsonAt(content[0], 'type'))).toEqual([
      'text',
      'thinking',
      'tool_result',
      'text',
      'text',
    ]);
  });
});

describe('reasoning', () => {
  it.each(['reasoning_content', 'reasoning'])(
    'in %s goes back in all turns, to its own model only',
    async (member) => {
      const id = await startWith(
        {
          kind: 'answer',
          reasoning: 'First.',
          reasoningMember: member,
          calls: [{ name: 'think', arguments: THINK }],
        },
        { kind: 'answer', reasoning: 'Second.', reasoningMember: member, text: 'Done.' },
        say('Done again.'),
      );
      await talk(id);
      await talk(id);
      expect(answersIn(llm)).toMatchObject([{ [member]: 'First.' }, { [member]: 'Second.' }]);
      const otherMember = member === 'reasoning' ? 'reasoning_content' : 'reasoning';
      expect(answersIn(llm)[0]).not.toHaveProperty(otherMember);
      await moveTo(id, other.url);
      await talk(id);
      expect(JSON.stringify(answersIn(other))).not.toMatch(/First|Second/);
    },
  );
});
