import { afterAll, beforeEach, describe, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { ScriptedAnthropic } from '../../packages/agent-server/test/fakes/scripted-anthropic.js';
import {
  calls,
  fails,
  page,
  say,
  type ScriptedAnswer,
} from '../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { type ChatRequest, ScriptedLlm } from '../../packages/agent-server/test/fakes/scripted-llm.js';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { useTestApp } from '../support/use-test-app.js';

const ADD = { name: 'add', arguments: { a: 2, b: 3 } };
const IN_TEXT = '<function=add>\n<parameter=a>2</parameter>\n<parameter=b>3</parameter>\n</function>';

/** A model that can do all of it. */
function able({ tools, text }: ChatRequest): ScriptedAnswer {
  if (tools.length === 0) {
    return say(text.includes('<function=add>') ? IN_TEXT : 'yes');
  }
  return text.includes('both at once') ? calls(ADD, ADD) : calls(ADD);
}

let llm: ScriptedLlm;
let claude: ScriptedAnthropic;
let user: TestUser;

const app = useTestApp(async () => {
  llm = await ScriptedLlm.start(able);
  const usage = { input: 1, output: 1 };
  claude = await ScriptedAnthropic.start([
    { text: IN_TEXT, call: { id: 'a', name: 'add', input: {} }, usage },
  ]);
  const open = [llm.url, claude.url].map((url) => new URL(url).origin).join(',');
  return { OUTBOUND_ALLOWLIST: `${open},http://127.0.0.1:1` };
});

beforeEach(async () => {
  llm.script = able;
  llm.requests.length = 0;
  user = await app.createUser();
});

afterAll(async () => {
  await llm.close();
  await claude.close();
});

const model = (more: object = {}) => ({ model: 'openai/qwen', base_url: llm.url, api_key: 'k', ...more });

async function post(body: object, status = 200): Promise<Record<string, unknown>> {
  const response = await app.as(user).post('/api/v1/model-check', body);
  expect([response.status, response.status === status ? null : response.body]).toEqual([status, null]);
  return response.body;
}

async function results(body: object): Promise<Record<string, unknown>> {
  const checks = jsonList(await post(body), 'checks');
  return Object.fromEntries(checks.map((check) => [jsonText(check, 'name'), Object(check)['result']]));
}

const ALL_OK = {
  reachable: 'ok',
  streams: 'ok',
  tools_native: 'ok',
  tools_in_text: 'ok',
  several_calls: 'ok',
  images: 'ok',
  context: 'unknown',
  price: 'unknown',
};

describe('POST /api/v1/model-check', () => {
  it('says what a model can do, with few tokens', async () => {
    expect(await results({ llm: model() })).toEqual(ALL_OK);
    expect(llm.requests).toHaveLength(5);
    expect(llm.requests.every(({ body }) => Number(body['max_tokens']) <= 1_000)).toBe(true);
    expect(llm.requests.some(({ text }) => text.includes('data:image/png'))).toBe(true);
  });

  it("asks in Anthropic's form too", async () => {
    const given = { model: 'anthropic/claude-x', base_url: claude.url, api_key: 'k', api: 'anthropic' };
    expect(await results({ llm: given })).toEqual({ ...ALL_OK, several_calls: 'no' });
  });

  it('says what to set for a model that calls no tools and takes no pictures', async () => {
    const json = JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'yes' } }] });
    llm.script = ({ text, tools }) =>
      text.includes('data:image')
        ? fails(400, 'images are not supported')
        : tools.length > 0
          ? say('I would add them.')
          : page(json, 'application/json');
    const { model: name, checks } = await post({ llm: model() });
    expect(name).toBe('openai/qwen');
    expect(checks).toMatchObject([
      { name: 'reachable', result: 'ok' },
      { name: 'streams', result: 'no' },
      { name: 'tools_native', result: 'no', detail: 'It made no call of a tool.' },
      { name: 'tools_in_text', result: 'no' },
      { name: 'several_calls', result: 'no' },
      {
        name: 'images',
        result: 'no',
        detail: expect.stringContaining('not supported'),
        setting: { disable_vision: true },
      },
      { name: 'context', result: 'unknown' },
      { name: 'price', result: 'unknown' },
    ]);
  });

  it.each<[string, ScriptedAnswer, object | undefined]>([
    ['writes them as it is told', say(IN_TEXT), { native_tool_calling: false }],
    ['did not say whether it writes them', fails(500, 'try again'), { native_tool_calling: false }],
    ['writes none either', say('I would add them.'), undefined],
  ])('says what to set for a model that makes no calls and %s', async (_what, inText, setting) => {
    llm.script = ({ text }) => (text.includes('<function=add>') ? inText : say('yes'));
    const checks = jsonList(await post({ llm: model() }), 'checks');
    const native = checks.find((check) => jsonText(check, 'name') === 'tools_native');
    expect(Object(native)).toMatchObject({ result: 'no' });
    expect(Object(native).setting).toEqual(setting);
  });

  it('reads a long answer that begins calls and ends none', async () => {
    const content = '<function=add>'.repeat(100_000);
    const json = JSON.stringify({ choices: [{ message: { role: 'assistant', content } }] });
    llm.script = () => page(json, 'application/json');
    expect(await results({ llm: model() })).toMatchObject({ reachable: 'ok', tools_in_text: 'no' });
  });

  it('says that a key is refused, without the key', async () => {
    llm.script = () => fails(401, 'Incorrect API key provided: sk-secret-0123456789.');
    const body = await post({ llm: model({ api_key: 'sk-secret-0123456789' }) });
    const [first, ...others] = jsonList(body, 'checks');
    expect(first).toMatchObject({ name: 'reachable', result: 'no', detail: expect.stringContaining('401') });
    expect(JSON.stringify(body)).not.toContain('sk-secret');
    expect(others.slice(0, 5)).toMatchObject(Array.from({ length: 5 }, () => ({ result: 'unknown' })));
    expect(llm.requests).toHaveLength(1);
  });

  it('takes the model of the settings, and a stored one with its key', async () => {
    const settings = { llm_model: 'openai/qwen', llm_base_url: llm.url, llm_api_key: 'k-settings' };
    await app.as(user).post('/api/settings', settings);
    expect(await results({})).toEqual(ALL_OK);
    await app.as(user).post('/api/v1/settings/profiles/fast', { llm: model({ api_key: 'k-profile' }) });
    expect(await results({ profile: 'fast' })).toEqual(ALL_OK);
    expect(await results({ llm: model({ api_key: undefined }) })).toEqual(ALL_OK);
    const keys = new Set(llm.requests.map(({ headers }) => headers['authorization']));
    expect([...keys].slice(-2)).toEqual(['Bearer k-settings', 'Bearer k-profile']);
    expect(llm.requests.at(-1)?.headers['authorization']).toBe('Bearer k-settings');
    await post({ profile: 'none' }, 404);
  });

  it('tells what cannot be asked, and refuses what is no model', async () => {
    expect(await results({})).toMatchObject({ reachable: 'no', images: 'unknown' });
    expect(await results({ llm: { model: 'x', base_url: 'http://127.0.0.1:1/v1' } })).toMatchObject({
      reachable: 'no',
    });
    await post({ llm: { model: 'x', base_url: 'http://192.168.7.7/v1' } }, 422);
    await post({ llm: model({ temperature: 'hot' }) }, 422);
  });

  it("sends no header of the user's with the operator's key", async () => {
    const operators = await createTestApp({
      OUTBOUND_ALLOWLIST: new URL(llm.url).origin,
      DEFAULT_LLM_MODEL: 'openai/qwen',
      DEFAULT_LLM_BASE_URL: llm.url,
      DEFAULT_LLM_API_KEY: 'k-operator',
    });
    const other = await operators.createUser();
    const ask = async (path: string, body: object): Promise<void> => {
      await operators.as(other).post(path, body).expect(200);
    };
    await ask('/api/v1/settings', {
      agent_settings_diff: { llm: { extra_headers: { 'x-target-url': 'https://elsewhere.example' } } },
    });
    await ask('/api/v1/model-check', {});
    await operators.close();
    const { headers } = llm.requests[0] ?? { headers: {} };
    expect(headers).toMatchObject({ authorization: 'Bearer k-operator' });
    expect(headers).not.toHaveProperty('x-target-url');
  });

  it('is answered ten times an hour', async () => {
    llm.script = () => fails(401);
    for (let count = 0; count < 10; count += 1) {
      await post({ llm: model() });
    }
    const response = await app.as(user).post('/api/v1/model-check', { llm: model() });
    expect(response.status).toBe(429);
    expect(Number(response.headers['retry-after'])).toBeGreaterThan(3_000);
  });
});
