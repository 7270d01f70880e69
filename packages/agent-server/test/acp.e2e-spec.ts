import { describe, expect, it } from '@jest/globals';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { AcpEngine } from '../src/engine/acp/acp.engine.js';
import { toolEnvironment } from '../src/tool-view.js';
import { SCRIPTED_AGENT } from './fakes/memory-engine-host.js';
import { startRequest } from './support/agent-server-client.js';
import { eventProblems } from './support/published-agent-server.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const SECRET = 'secret-of-the-agent-4217';

const environment = toolEnvironment(process.env);
const createEngine = async () => new AcpEngine({ environment, wrapper: [] });
const server = useAgentServer(() => startTestAgentServer({ environment, createEngine }));

function launch(members: Record<string, unknown> = {}): Record<string, unknown> {
  return { acp_command: SCRIPTED_AGENT, acp_env: { HOME: server.folder }, ...members };
}

async function start(members: Record<string, unknown> = {}): Promise<string> {
  const agent = { kind: 'ACPAgent', ...launch(members) };
  return await server.client.start({ agent, secrets: { FAKE_SECRET: SECRET } });
}

async function saidTo(id: string, text: string): Promise<unknown[]> {
  await server.client.talk(id, text);
  return await server.client.answers(id);
}

describe('a conversation with an agent of others', () => {
  it('has events of the published kinds only, with secrets masked', async () => {
    const id = await start();
    expect(await saidTo(id, 'tool ls')).toEqual(['done']);
    await saidTo(id, 'think');
    await saidTo(id, 'plan');
    await saidTo(id, 'collide');
    await saidTo(id, `env FAKE_SECRET`);
    const events = await server.client.events(id);
    expect(events.flatMap(eventProblems)).toEqual([]);
    expect(events.filter((event) => jsonAt(event, 'kind') === 'ACPToolCallEvent').length).toBeGreaterThan(4);
    expect(JSON.stringify(events)).not.toContain(SECRET);
    expect(JSON.stringify(events)).toContain('FAKE_SECRET=<secret-hidden>');
  });

  it('says what its agent is and can', async () => {
    const id = await start({ acp_model: 'large' });
    expect(await server.client.info(id)).toMatchObject({
      agent: { kind: 'ACPAgent', acp_env: { HOME: '**********' } },
      agent_state: {
        acp_agent_name: 'scripted',
        acp_agent_version: '1.2.3',
        acp_capabilities: {
          load_session: true,
          image: true,
          mcp_http: false,
          mcp_sse: false,
          model_choice: true,
        },
      },
      current_model_id: 'large',
      available_models: [
        { model_id: 'small', name: 'The small one', description: null },
        { model_id: 'large', name: 'The large one', description: null },
      ],
      supports_runtime_model_switch: true,
    });
  });

  it('switches to a model that the agent has', async () => {
    const id = await start();
    const change = async (model: unknown): Promise<number> =>
      (await server.client.act(id, 'switch_acp_model', { model })).status;
    expect(await change('large')).toBe(200);
    expect(await change('huge')).toBe(400);
    expect(await change('')).toBe(422);
    expect(jsonAt(await server.client.info(id), 'current_model_id')).toBe('large');
  });

  it('is refused, and leaves nothing, when the agent cannot be started', async () => {
    const before = await server.client.get('/api/conversations/count');
    const agent = { kind: 'ACPAgent', ...launch({ acp_command: ['no-such-agent'] }) };
    const refused = await server.client.post('/api/conversations', startRequest({ agent }));
    expect(refused.status).toBe(400);
    expect(jsonText(refused.body, 'detail')).toContain('no-such-agent was not found');
    expect(await server.client.get('/api/conversations/count')).toBe(before);
  });

  it('starts its agent after a restart only as its client says again', async () => {
    const id = await start();
    await saidTo(id, 'first');
    await server.restart();
    const refused = await server.client.say(id, 'remember');
    expect(refused.status).toBe(400);
    expect(jsonText(refused.body, 'detail')).toContain('acp, secrets');
    const given = await server.client.act(id, 'credentials', {
      acp: launch(),
      secrets: { FAKE_SECRET: SECRET },
    });
    expect(given.status).toBe(200);
    expect((await saidTo(id, 'remember')).at(-1)).toMatch(/^I know: .*\nfirst$/s);
  });
});
