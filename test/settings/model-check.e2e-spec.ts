import { afterAll, afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { FakeServer } from '../fakes/fake-server.js';
import { createTestApp, type TestUser } from '../support/create-test-app.js';
import { useTestApp } from '../support/use-test-app.js';

const KEY = 'sk-right-0123456789';
const WRONG = 'sk-wrong-0123456789';

let models: FakeServer;
let user: TestUser;

const app = useTestApp(async () => {
  models = await FakeServer.start(({ headers }) =>
    headers['authorization'] === `Bearer ${KEY}`
      ? { status: 200, body: { object: 'list', data: [{ id: 'models/gpt-5' }, { id: 'qwen3:latest' }] } }
      : {
          status: 401,
          body: { error: { message: `Incorrect API key provided: ${WRONG}.`, code: 'invalid_api_key' } },
        },
  );
  return { OUTBOUND_ALLOWLIST: `${models.origin},http://127.0.0.1:1` };
});

beforeEach(async () => {
  user = await app.createUser();
  models.requests.length = 0;
});

afterEach(() => {
  models.clearFaults();
  jest.restoreAllMocks();
});

afterAll(() => models.close());

/** Makes five seconds of timers short. */
function hurry(): void {
  const { setTimeout: wait } = globalThis;
  const soon = (work: () => void, milliseconds?: number) =>
    wait(work, milliseconds === 5_000 ? 100 : milliseconds);
  jest.spyOn(globalThis, 'setTimeout').mockImplementation(soon);
}

async function post(path: string, body: object): Promise<{ message: string; warnings?: unknown[] }> {
  const response = await app.as(user).post(path, body);
  expect([200, 201]).toContain(response.status);
  return response.body;
}

function settings(changes: object): object {
  return { llm_model: 'openai/gpt-5', llm_base_url: `${models.origin}/v1`, llm_api_key: KEY, ...changes };
}

describe('a model that is stored', () => {
  it.each([
    ['the settings', '/api/settings', settings],
    [
      'the nested settings',
      '/api/v1/settings',
      (changes: { llm_api_key?: string }) => ({
        agent_settings_diff: {
          llm: { model: 'gpt-5', base_url: `${models.origin}/v1`, api_key: changes.llm_api_key ?? KEY },
        },
      }),
    ],
    [
      'a profile',
      '/api/v1/settings/profiles/fast',
      (changes: { llm_api_key?: string }) => ({
        llm: { model: 'gpt-5', base_url: `${models.origin}/v1`, api_key: changes.llm_api_key ?? KEY },
      }),
    ],
  ])('in %s is checked with one request, once for each change', async (_where, path, body) => {
    expect((await post(path, body({ llm_api_key: WRONG }))).warnings).toEqual([
      {
        code: 'unauthorized',
        detail: 'The model was stored but not verified: 401 Incorrect API key provided: **********.',
      },
    ]);
    expect(await post(path, body({ llm_api_key: WRONG }))).not.toHaveProperty('warnings');
    expect(await post(path, body({}))).not.toHaveProperty('warnings');
    expect(models.requests.map(({ method, path: asked }) => `${method} ${asked}`)).toEqual([
      'GET /v1/models',
      'GET /v1/models',
    ]);
  });

  it('is not checked when something else changes, or nothing could be', async () => {
    await post('/api/settings', settings({}));
    await post('/api/settings', { language: 'en', max_iterations: 7 });
    await post('/api/settings', settings({ language: 'de' }));
    await post('/api/v1/settings', { agent_settings_diff: { llm: { temperature: 0.5 } } });
    expect(models.requests).toHaveLength(1);
    const cleared = { llm_model: '', llm_base_url: '', llm_api_key: '' };
    expect(await post('/api/settings', cleared)).not.toHaveProperty('warnings');
    const unknown = { llm_model: 'provider/model-1', llm_api_key: KEY };
    // There is no server to ask.
    expect((await post('/api/settings', unknown)).warnings).toMatchObject([{ code: 'no_address' }]);
  });

  it.each([
    ['qwen3', null],
    ['openai/gpt-5', null],
    ['gpt-6', 'its server knows 2 models, but none of the name gpt-6'],
  ])('is looked up by its name: %s', async (model, reason) => {
    const { warnings = [] } = await post('/api/settings', settings({ llm_model: model }));
    expect(warnings).toEqual(
      reason === null
        ? []
        : [{ code: 'unknown_model', detail: `The model was stored but not verified: ${reason}.` }],
    );
  });

  it.each([
    [{ kind: 'status', status: 404, body: 'nothing' }, 'rejected', /404 it has no list of models/],
    [
      { kind: 'status', status: 400, body: [{ error: { message: 'API key not valid.' } }] },
      'rejected',
      /400 API key not valid\.$/,
    ],
    [{ kind: 'status', status: 429, body: { detail: 'slow\ndown' } }, 'rate_limited', /429 slow down/],
    [{ kind: 'status', status: 503, body: 'x'.repeat(10_000) }, 'unavailable', /: 503\.$/],
    [
      { kind: 'status', status: 401, body: { error: { message: 'x'.repeat(9_000) } } },
      'unauthorized',
      /401 x{299}…\.$/,
    ],
    [{ kind: 'reset' }, 'unavailable', /could not be reached/],
    [{ kind: 'hang' }, 'timeout', /did not answer within 5 seconds/],
    [{ kind: 'huge', bytes: 5_000_000 }, 'unavailable', /sent too much/],
    [{ kind: 'redirect', location: 'http://169.254.169.254/' }, 'unavailable', /sends requests on/],
  ] as const)('is stored whatever its server does: %j', async (fault, code, detail) => {
    models.injectFault(fault);
    if (fault.kind === 'hang') {
      hurry();
    }
    const { message, warnings } = await post('/api/settings', settings({}));
    expect(message).toBe('Settings stored');
    expect(warnings).toEqual([{ code, detail: expect.stringMatching(detail) }]);
    const stored = await app.as(user).get('/api/settings').expect(200);
    expect(stored.body).toMatchObject({ llm_model: 'openai/gpt-5', llm_api_key_set: true });
  });

  it('is not asked for where the service may not go', async () => {
    const open = await createTestApp();
    try {
      const { body } = await open.as(open.user).post('/api/settings', settings({})).expect(200);
      expect(body.warnings).toMatchObject([
        { code: 'refused', detail: expect.stringContaining('SANDBOX_NETWORK_ALLOW') },
      ]);
    } finally {
      await open.close();
    }
    expect(models.requests).toEqual([]);
    const { warnings } = await post('/api/settings', {
      llm_model: 'deepseek/deepseek-chat',
      llm_api_key: KEY,
    });
    expect(warnings).toMatchObject([
      { code: 'refused', detail: expect.stringContaining('OUTBOUND_ALLOWLIST') },
    ]);
  });
});

describe('a model that cannot work', () => {
  const codes = async (body: object): Promise<unknown[]> =>
    ((await post('/api/settings', body)).warnings ?? []).map((warning) => Object(warning).code);

  it('is said when it is stored, and not again with the next change', async () => {
    expect(await codes({ llm_model: 'gpt-5' })).toEqual(['no_key']);
    expect(await codes({ language: 'en', llm_model: 'gpt-5' })).toEqual([]);
    expect(await codes({ llm_model: 'azure/mine' })).toEqual(['no_address']);
    // It needs no key; the service itself may not look there.
    expect(await codes({ llm_model: 'ollama/small' })).toEqual(['refused']);
    expect(await codes({ llm_model: '' })).toEqual([]);
  });

  it('is one with a budget whose price is not known', async () => {
    await post('/api/settings', settings({ llm_model: 'openai/gpt-5' }));
    expect(await codes({ max_budget_per_task: 2 })).toEqual([]);
    expect(await codes({ llm_model: 'openai/qwen3', max_budget_per_task: 2 })).toEqual(['no_price']);
    const { warnings } = await post('/api/settings', { max_budget_per_task: 4 });
    expect(warnings).toMatchObject([{ detail: expect.stringContaining('is not enforced') }]);
    expect(await codes({ max_budget_per_task: null })).toEqual([]);
    const nested = { agent_settings_diff: { llm: { input_cost_per_token: 0, output_cost_per_token: 0 } } };
    await post('/api/v1/settings', nested);
    expect(await codes({ max_budget_per_task: 3 })).toEqual([]);
  });
});
