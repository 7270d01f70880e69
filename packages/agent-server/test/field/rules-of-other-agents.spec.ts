import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { startSeparateAgentServer, type SeparateAgentServer } from '../support/test-agent-server.js';

let server: SeparateAgentServer;
let repository: string;
beforeAll(async () => {
  server = await startSeparateAgentServer();
  repository = path.join(server.workspace, 'project');
});
afterAll(() => server.stop());
afterEach(async () => {
  await rm(repository, { recursive: true, force: true, maxRetries: 10 });
});

async function put(file: string, content: string): Promise<void> {
  const target = path.resolve(repository, file);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, content);
}

async function contents(): Promise<Map<unknown, string | null>> {
  const { body } = await server.client.post('/api/skills', { project_dir: repository, load_user: false });
  return new Map(
    jsonList(body, 'skills').map((skill) => [jsonAt(skill, 'name'), jsonText(skill, 'content')]),
  );
}

/** What the agent knows of them before it begins. */
async function prompt(): Promise<string> {
  const id = await server.client.start({
    agent: {
      kind: 'Agent',
      llm: { model: 'openai/fake', api_key: 'key', base_url: 'http://llm.example/v1', usage_id: 'agent' },
      agent_context: { load_project_skills: true },
    },
    workspace: { working_dir: repository },
  });
  await server.client.say(id, 'settings');
  await server.client.untilStatus(id, 'finished');
  const [settings] = await server.client.answers(id);
  return jsonText(JSON.parse(String(settings)), 'systemPromptSuffix') ?? '';
}

describe('the rules that a repository has for other agents', () => {
  it('are read as those do: always, by path, on demand', async () => {
    await put('.github/copilot-instructions.md', 'Of Copilot.');
    await put('.windsurfrules', 'Of Windsurf.');
    await put('.clinerules', 'Of Cline.');
    await put('.cursor/rules/always.mdc', '---\nalwaysApply: true\nglobs:\n---\nAlways.');
    await put('.cursor/rules/web/types.mdc', '---\nglobs: *.ts,*.tsx\nalwaysApply: false\n---\nOf types.');
    await put('.cursor/rules/database.mdc', '---\ndescription: How to migrate\n---\nOf the database.');
    await put('.github/instructions/py.instructions.md', '---\napplyTo: "**/*.py"\n---\nOf Python.');
    await put('.github/instructions/all.instructions.md', "---\napplyTo: '**'\n---\nOf all.");
    await put(
      '.claude/skills/release/SKILL.md',
      '---\nname: release\ndescription: How to release\n---\nDo it.',
    );
    const text = await prompt();
    for (const always of ['Of Copilot.', 'Of Windsurf.', 'Of Cline.', 'Always.', 'Of all.']) {
      expect(text).toContain(always);
    }
    for (const later of ['Of types.', 'Of the database.', 'Of Python.', 'Do it.']) {
      expect(text).not.toContain(later);
    }
    expect(text).toContain(`- *.ts, *.tsx: ${repository}/.cursor/rules/web/types.mdc`);
    expect(text).toContain(`- **/*.py: ${repository}/.github/instructions/py.instructions.md`);
    expect(text).toMatch(/- cursor:database: How to migrate/);
    expect(text).toMatch(/- release: How to release/);
  });

  it('in a folder of Cline are all given', async () => {
    await put('.clinerules/one.md', 'One.');
    await put('.clinerules/two.md', 'Two.');
    const text = await prompt();
    expect([text.includes('One.'), text.includes('Two.')]).toEqual([true, true]);
  });

  it('import files of the repository, each once', async () => {
    await put('AGENTS.md', 'See @docs/style.md, and write to me@example.md or @team.');
    await put('CLAUDE.md', '@AGENTS.md\n@./docs/style.md\n`@docs/code.md`\n```\n@docs/code.md\n```\n');
    await put('docs/style.md', 'Use tabs. @more.md @style.md @missing.md');
    await put('docs/more.md', 'More of it.');
    await put('docs/code.md', 'Not asked for.');
    const found = await contents();
    expect(found.get('agents')).toBe(
      'See Use tabs. More of it. [style.md: see there] @missing.md, and write to me@example.md or @team.',
    );
    expect(found.get('claude')).toBe(
      '[AGENTS.md: see there]\n[./docs/style.md: see there]\n`@docs/code.md`\n```\n@docs/code.md\n```\n',
    );
  });

  it('import nothing from elsewhere', async () => {
    await put('../outside.md', 'a secret of somebody else');
    await put('AGENTS.md', '@../outside.md @/etc/hostname.d @docs/link.md @docs/../../outside.md');
    await mkdir(path.join(repository, 'docs'));
    await symlink('../../outside.md', path.join(repository, 'docs/link.md'));
    expect((await contents()).get('agents')).toBe(
      '@../outside.md @/etc/hostname.d @docs/link.md @docs/../../outside.md',
    );
  });

  it('are bounded together, and name the rest', async () => {
    await put('AGENTS.md', `@docs/large.md ${'x'.repeat(50_000)}`);
    await put('docs/large.md', 'y'.repeat(70_000));
    await put('.windsurfrules', 'z'.repeat(50_000));
    const text = await prompt();
    expect(text.length).toBeLessThan(62_000);
    expect(text).toContain('@docs/large.md');
    expect(text).toMatch(/characters left out: see .*\.windsurfrules/);
  });

  it('end in time, whatever they are', async () => {
    await put('AGENTS.md', `@${'.'.repeat(90_000)} ${'`'.repeat(5_000)}`);
    await put('CLAUDE.md', '@GEMINI.md');
    await put('GEMINI.md', '@CLAUDE.md');
    await put('.cursor/rules/a.mdc', '---\n'.repeat(20_000));
    expect([...(await contents()).keys()]).toEqual(expect.arrayContaining(['agents', 'claude', 'gemini']));
  });
});
