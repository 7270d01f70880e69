import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { useFolder } from '../../../../test/support/use-folder.js';
import { readAcpAgents } from './acp-agents.js';

describe('readAcpAgents', () => {
  const folder = useFolder();
  let file: string;

  beforeEach(() => {
    file = path.join(folder.path, 'agents.yaml');
  });

  it('reads names, commands and what they may see', async () => {
    await writeFile(
      file,
      '- { name: own, command: own-agent, args: [--acp], env: { KEY: "${llm_api_key}", URL: "${llm_base_url}" }, secrets: [llm_api_key] }',
    );
    expect([...(await readAcpAgents(file)).values()]).toEqual([
      {
        name: 'own',
        command: 'own-agent',
        args: ['--acp'],
        env: { KEY: '${llm_api_key}', URL: '${llm_base_url}' },
        secrets: ['llm_api_key'],
        model: null,
        mode: null,
        auth_method: null,
        install: null,
        hosts: [],
        credentials: null,
      },
    ]);
  });

  it.each([
    ['- { name: Own, command: x }', /0\.name|\[0\]\.name/],
    ['- { name: own }', /command/],
    ['- { name: own, command: x, secret: [A] }', /secret/],
    ['- { name: own, command: x, env: { KEY: "${OTHER}" } }', /KEY.*\$\{OTHER\} is neither/],
    ['- { name: own, command: x, env: { KEY: "${llm_api_key}" } }', /llm_api_key\} is neither/],
    [
      '- { name: own, command: x, secrets: [git_tokens], env: { KEY: "${git_tokens}" } }',
      /git_tokens\} is neither/,
    ],
    ['- { name: own, command: x }\n- { name: own, command: y }', /twice/],
    ['- { name: own, command: x, hosts: ["*.com"] }', /hosts.*NAME/],
    ['- { name: own, command: x, credentials: outside }', /credentials/],
    ['a: 1', /^ACP_AGENTS_FILE: /],
    ['[', /^ACP_AGENTS_FILE: /],
  ])('refuses %j', async (content, reason) => {
    await writeFile(file, content);
    await expect(readAcpAgents(file)).rejects.toThrow(reason);
  });
});
