import { expect, it } from '@jest/globals';
import { agentKeys } from './agent-keys.js';

const AGENT = {
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

it.each([
  ['https://models.example/v1', [{ host: 'models.example', paths: ['/v1/*'] }]],
  ['https://*.example/v1', null],
])('a key for %s goes there, and to no host of a rule', (base, places) => {
  expect(agentKeys(AGENT, { llm_base_url: base })).toEqual([
    { name: 'ANTHROPIC_API_KEY', literal: null, places },
  ]);
});
