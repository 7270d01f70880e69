import { expect, it } from '@jest/globals';
import type { AcpAgent } from '../agent-request/acp-agents.js';
import { agentKeys } from './agent-keys.js';

const AGENT: AcpAgent = {
  name: 'claude',
  command: 'claude',
  args: [],
  env: { ANTHROPIC_BASE_URL: '${llm_base_url}' },
  secrets: ['ANTHROPIC_API_KEY'],
  model: null,
  mode: null,
  auth_method: null,
  install: null,
  hosts: [],
  credentials: null,
};

const below = (host: string, path: string): object[] => [{ host, paths: [path] }];

it.each<[string, Partial<AcpAgent>, string | null, object[] | null]>([
  ['the address of the settings', {}, 'https://models.example/v1', below('models.example', '/v1/*')],
  ['no host of a rule', {}, 'https://*.example/v1', null],
  ['the vendor where there is no address', {}, null, below('api.anthropic.com', '/v1/*')],
  [
    'the address in a configuration of its own',
    { env: { CONFIG: '{"url": "${llm_base_url}"}' } },
    'https://models.example/v1',
    below('models.example', '/v1/*'),
  ],
  [
    'the hosts that the list says',
    { hosts: ['llm.example:8443'] },
    null,
    [{ host: 'llm.example', port: 8443 }],
  ],
])('a key goes to %s', (_where, change, base, places) => {
  expect(agentKeys({ ...AGENT, ...change }, { llm_base_url: base })).toEqual([
    { name: 'ANTHROPIC_API_KEY', literal: null, places },
  ]);
});
