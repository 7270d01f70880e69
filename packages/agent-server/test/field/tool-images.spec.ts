import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import path from 'node:path';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { ScriptedAnthropic } from '../fakes/scripted-anthropic.js';
import { calls, fails, say } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder } from '../fakes/scripted-llm.js';
import { codesOf, NativeAgent } from './native-agent.js';

// openai/codex#4819, anomalyco/opencode: images in the results of tool servers never reach the model.

const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
const SERVER = {
  command: process.execPath,
  args: [path.resolve('packages/agent-server/test/fakes/mcp-servers/odd-tools-server.mjs')],
};
const SHOWN = { picture: true };

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
});
afterAll(async () => {
  await agent.close();
});

const rolesOf = (request: ChatRequest | undefined) => request?.messages.map(({ role }) => role);

describe('images in the results of tools', () => {
  it('go to a model behind the results of all calls', async () => {
    const answer = calls({ name: 'nothing', arguments: SHOWN }, { name: 'optional', arguments: {} });
    const host = await agent.run(inOrder(answer, say('I see.')), { mcpConfig: { odd: SERVER } });
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

  it('are notes for a model that refuses them, which is remembered', async () => {
    const host = await agent.run(
      ({ index, text }) =>
        text.includes('image_url')
          ? fails(400, 'this model has no eyes')
          : index === 0
            ? calls({ name: 'nothing', arguments: SHOWN })
            : say('I see nothing.'),
      { mcpConfig: { odd: SERVER } },
    );
    expect(host.status).toBe('finished');
    expect(codesOf(host)).toContain('ImagesLeftOut');
    expect(agent.llm.requests.at(-1)?.text).toContain('an image was left out: the model refused it');
    const before = agent.llm.requests.length;
    await host.say('And now?');
    await agent.goOn(host);
    expect(agent.llm.requests).toHaveLength(before + 1);
  });

  it('go to Anthropic beside the result', async () => {
    const claude = await ScriptedAnthropic.start([
      { call: { id: 'toolu_1', name: 'nothing', input: SHOWN }, usage: { input: 1, output: 1 } },
      { text: 'I see.', usage: { input: 1, output: 1 } },
    ]);
    const engine = new NativeEngine({ anthropicUrl: claude.url });
    const host = new MemoryEngineHost(
      engineSettings(agent.folder, '', {
        llm: { model: 'anthropic/claude', apiKey: 'key', baseUrl: null },
        mcpConfig: { odd: SERVER },
      }),
    );
    await host.say('Look.');
    await engine.run(host, new AbortController().signal);
    await engine.close();
    await claude.close();
    expect(claude.refusals).toEqual([]);
    const last = jsonList(claude.requests.at(-1)?.body, 'messages').at(-1);
    const types = jsonList(last, 'content').map((block) => jsonText(block, 'type'));
    expect(types).toEqual(['tool_result', 'text', 'image']);
  });
});
