import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { fails, say } from '../fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../fakes/scripted-llm.js';
import { startWithModelAt } from '../support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

// https://github.com/agentscope-ai/agentscope-java/issues/2700: an image that has expired fails every later request.
// https://github.com/danny-avila/LibreChat/issues/5101: OpenAI answers 400 when it cannot load an image in time.

const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const GONE = 'http://127.0.0.1:9/gone.png';

let server: TestAgentServer;
let llm: ScriptedLlm;

beforeEach(async () => {
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
});

afterEach(async () => {
  await server.stop();
  await llm.close();
});

async function start(): Promise<string> {
  return await server.client.start(startWithModelAt(llm.url));
}

async function show(id: string, ...image_urls: string[]): Promise<void> {
  await server.client.post(`/api/conversations/${id}/events`, {
    role: 'user',
    content: [
      { type: 'text', text: 'Look.' },
      { type: 'image', image_urls },
    ],
    run: true,
  });
  await server.client.untilStatus(id, 'finished');
}

const lastPrompt = (): string => llm.requests.at(-1)?.text ?? '';

it('hands addresses to the model, and loads nothing itself', async () => {
  llm = await ScriptedLlm.start(() => say('I see.'));
  const id = await start();
  await show(id, GONE, PIXEL);
  expect(lastPrompt()).toContain(GONE);
  expect(lastPrompt()).toContain(PIXEL);
});

it.each([
  ['text that is no base64', 'data:image/png;base64,?', 'its data is damaged'],
  ['a type that no model takes', 'data:image/svg+xml;base64,PHN2Zz4=', 'it is no PNG, JPEG, GIF or WebP'],
  ['too much', `data:image/png;base64,iVBORw0KGgoA${'A'.repeat(7_000_000)}`, 'it is larger than 5 MiB'],
])('puts a note in place of %s', async (_, url, reason) => {
  llm = await ScriptedLlm.start(() => say('I see.'));
  const id = await start();
  await show(id, url);
  expect(llm.refusals).toEqual([]);
  expect(lastPrompt()).toContain(`[an image was left out: ${reason}]`);
});

it.each([
  ['an address that it cannot load', 1, true],
  ['every image', 2, false],
])('goes on without what the model refuses: %s', async (_, notes, keepsData) => {
  llm = await ScriptedLlm.start(({ text }) =>
    text.includes('gone.png') || (!keepsData && text.includes('image_url'))
      ? fails(400, 'unknown variant `image_url`')
      : say('I see.'),
  );
  const id = await start();
  await show(id, GONE, PIXEL);
  expect(lastPrompt().match(/an image was left out: the model refused it/g)).toHaveLength(notes);
  expect(lastPrompt().includes(PIXEL)).toBe(keepsData);
  expect(await server.client.events(id, '&kind=ConversationErrorEvent')).toMatchObject([
    { code: 'ImagesLeftOut', detail: expect.stringContaining('unknown variant') },
  ]);
  const requests = llm.requests.length;
  await show(id, PIXEL);
  // It is remembered.
  expect(llm.requests).toHaveLength(requests + 1);
});

// Proxies in front of models refuse bodies of a few megabytes, however short the history is.
it('goes on without images that make a request too large', async () => {
  llm = await ScriptedLlm.start(({ text }) =>
    text.includes('image_url') ? fails(413, 'Request Entity Too Large') : say('I see nothing.'),
  );
  const id = await start();
  await show(id, PIXEL);
  expect(lastPrompt()).toContain('an image was left out: the model refused it');
  expect(await server.client.events(id, '&kind=ConversationErrorEvent')).toMatchObject([
    { code: 'ImagesLeftOut', detail: expect.stringContaining('Request Entity Too Large') },
  ]);
});

it('reports a refusal that has nothing to do with images', async () => {
  llm = await ScriptedLlm.start(() => fails(400, 'no such parameter'));
  const id = await start();
  await server.client.post(`/api/conversations/${id}/events`, {
    role: 'user',
    content: [{ type: 'image', image_urls: [PIXEL] }],
    run: true,
  });
  await server.client.untilStatus(id, 'error');
  expect(await server.client.events(id, '&kind=ConversationErrorEvent')).toMatchObject([
    { code: 'LlmRejected', detail: expect.stringContaining('no such parameter') },
  ]);
});
