import { describe, expect, it } from '@jest/globals';
import { jsonAt } from '@slipway/common/json-access.js';
import { lookUpSecrets } from '../src/conversations/credentials.js';
import { startTestAgentServer, useAgentServer } from './support/test-agent-server.js';

const server = useAgentServer(startTestAgentServer);

/** Names that every object has already, or that change what it inherits. */
const NAMES = ['__proto__', 'constructor'];

/** As a client's JSON text makes it: an own member, whatever the name. */
function named(name: string, value: unknown): unknown {
  return JSON.parse(`{"${name}":${JSON.stringify(value)}}`);
}

describe('names that people choose', () => {
  it.each(NAMES)('are names of secrets: %s', async (name) => {
    const id = await server.client.start({ secrets: named(name, 'seventeen letters') });

    expect(await server.client.answerTo(id, `length ${name}`)).toBe('17');
    await server.client.act(id, 'secrets', { secrets: named(name, 'short') });
    expect(await server.client.answerTo(id, `length ${name}`)).toBe('5');
  });

  it.each(NAMES)('are names of tool servers and of their variables: %s', async (name) => {
    const servers = named(name, { command: 'true', env: named(name, 'value') });
    const agent = { llm: { model: 'openai/fake', api_key: 'k' }, mcp_config: { mcpServers: servers } };
    const id = await server.client.start({ agent });
    const settings: unknown = JSON.parse(String(await server.client.answerTo(id, 'settings')));
    const config = jsonAt(settings, 'mcpConfig');

    expect(Object.entries(Object(config))).toMatchObject([[name, { command: 'true' }]]);
    expect(JSON.stringify(config)).toContain(`{"${name}":"`);
  });

  it('name no secret that cannot be fetched', async () => {
    const source = { kind: 'LookupSecret' as const, url: 'http://127.0.0.1:1/' };

    expect(Object.keys(await lookUpSecrets({ constructor: source }, {}, () => null))).toEqual([]);
  });
});
