import { describe, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import type { MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { calls, fails, say } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder, type Script } from '../fakes/scripted-llm.js';
import { expectTold, nativeAgent, oddTools, showImages } from './native-agent.js';

// https://github.com/agentscope-ai/agentscope-java/issues/2700: an image that has expired fails every later request.
// https://github.com/danny-avila/LibreChat/issues/5101: OpenAI answers 400 when it cannot load an image in time.

const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const GONE = 'http://127.0.0.1:9/gone.png';

const agent = nativeAgent();

async function show(host: MemoryEngineHost, ...images: string[]): Promise<void> {
  await showImages(host, images, 'Look.');
  await agent.goOn(host);
}

async function shown(images: string[], script: Script = () => say('I see.')): Promise<MemoryEngineHost> {
  const host = await agent.run(script);
  await show(host, ...images);
  return host;
}

const lastPrompt = (): string => agent.llm.requests.at(-1)?.text ?? '';

const UNKNOWN = fails(400, 'unknown variant `image_url`');
it.each([
  ['an address that it cannot load', [GONE, PIXEL], UNKNOWN, /gone\.png/, 1],
  ['every image', [GONE, PIXEL], UNKNOWN, /image_url/, 2],
  // Proxies in front of models refuse bodies of a few megabytes, however short the history is.
  ['those that make a request too large', [PIXEL], fails(413, 'Request Entity Too Large'), /image_url/, 1],
])('goes on without what the model refuses: %s', async (_, images, refusal, refused, notes) => {
  const host = await shown(images, ({ text }) => (refused.test(text) ? refusal : say('I see.')));
  expect(lastPrompt().match(/an image was left out: the model refused it/g)).toHaveLength(notes);
  expect(lastPrompt().includes(PIXEL)).toBe(notes < images.length);
  expectTold(host, 'ImagesLeftOut', /image_url|Request Entity Too Large/, 'finished');
  const requests = agent.llm.requests.length;
  await show(host, PIXEL);
  // It is remembered.
  expect(agent.llm.requests).toHaveLength(requests + 1);
});

it('reports a refusal that has nothing to do with images', async () => {
  const script: Script = ({ index }) => (index === 0 ? say('Well.') : fails(400, 'no such parameter'));
  const host = await shown([PIXEL], script);
  expectTold(host, 'LlmRejected', 'no such parameter');
});

// openai/codex#4819, anomalyco/opencode: images in the results of tool servers never reach the model.

const mcpConfig = { odd: oddTools() };
const SHOWN = { picture: true };

const rolesOf = (request: ChatRequest | undefined) => request?.messages.map(({ role }) => role);

describe('images in the results of tools', () => {
  it('go to a model behind the results of all calls', async () => {
    const answer = calls({ name: 'nothing', arguments: SHOWN }, { name: 'optional', arguments: {} });
    const host = await agent.run(inOrder(answer, say('I see.')), { mcpConfig });
    const request = agent.llm.requests[1];
    expect(agent.llm.refusals).toEqual([]);
    expect(rolesOf(request)).toEqual(['system', 'user', 'assistant', 'tool', 'tool', 'user']);
    expect(request?.messages[3]?.content).toContain('[1 image(s) in the next message]');
    expect(request?.messages[5]?.content).toEqual([
      { type: 'text', text: 'In the result of nothing:' },
      { type: 'image_url', image_url: { url: PIXEL } },
    ]);
    expect(host.status).toBe('finished');
  });

  it('go to Anthropic beside the result', async () => {
    const answers = [{ call: { id: 'toolu_1', name: 'nothing', input: SHOWN } }, { text: 'I see.' }];
    const { claude } = await agent.runAtAnthropic(answers, { mcpConfig });
    expect(claude.refusals).toEqual([]);
    const last = jsonList(claude.requests.at(-1)?.body, 'messages').at(-1);
    const types = jsonList(last, 'content').map((block) => jsonText(block, 'type'));
    expect(types).toEqual(['tool_result', 'text', 'image']);
  });
});
