import { expect, it } from '@jest/globals';
import { redactAgent } from '../secret-masker.js';

it('keeps everything but secrets', () => {
  const agent = {
    kind: 'Agent',
    llm: {
      model: 'm',
      api_key: 'k1',
      base_url: 'https://user:k2@llm.example/v1',
      extra_headers: { 'X-Key': 'k3' },
      max_output_tokens: 7,
    },
    condenser: { kind: 'LLMSummarizingCondenser', llm: { model: 'm', api_key: 'k4' } },
    mcp_config: {
      mcpServers: {
        a: { command: 'c', args: ['x'], env: { TOKEN: 'k5' } },
        b: { url: 'https://b', auth: 'k6' },
        c: {
          url: 'https://c',
          auth: { strategy: 'basic', username: 'ada', password: 'k8', state: { x: 'k9' } },
        },
      },
    },
    agent_context: { secrets: { NAME: { kind: 'StaticSecret', value: 'k7' } } },
    tools: [{ name: 'terminal', params: {} }],
  };
  const redacted = redactAgent(agent);
  expect(JSON.stringify(redacted)).not.toMatch(/k\d/);
  expect(redacted).toMatchObject({
    llm: {
      model: 'm',
      api_key: '**********',
      base_url: 'https://**********@llm.example/v1',
      max_output_tokens: 7,
    },
    mcp_config: {
      mcpServers: {
        a: { command: 'c', args: ['x'], env: { TOKEN: '**********' } },
        c: { auth: { strategy: 'basic', username: 'ada', password: '**********' } },
      },
    },
    tools: [{ name: 'terminal', params: {} }],
  });
});
