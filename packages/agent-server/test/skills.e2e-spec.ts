import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { toolEnvironment } from '../src/tool-view.js';
import { startSeparateAgentServer, useAgentServer } from './support/test-agent-server.js';

const server = useAgentServer(startSeparateAgentServer);
let repository: string;
let home: string;

beforeAll(async () => {
  home = path.join(server.folder, 'home');
  await mkdir(home);
  await server.restart({ environment: { ...toolEnvironment(process.env), HOME: home } });
  repository = path.join(server.workspace, 'project');
});
afterEach(async () => {
  await rm(repository, { recursive: true, force: true, maxRetries: 10 });
});

async function put(file: string, content: string | Uint8Array): Promise<void> {
  const target = path.resolve(repository, file);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, content);
}

async function list(members: Record<string, unknown> = {}) {
  const answer = await server.client.post('/api/skills', { project_dir: repository, ...members });
  expect(answer.status).toBe(200);
  const skills = jsonList(answer.body, 'skills');
  return {
    skills,
    sources: jsonAt(answer.body, 'sources'),
    names: skills.map((skill) => jsonAt(skill, 'name')),
    contents: new Map(skills.map((skill) => [jsonText(skill, 'name'), jsonText(skill, 'content')])),
  };
}

async function begin(message: string, context: Record<string, unknown> = {}): Promise<string> {
  const llm = { model: 'openai/fake', api_key: 'key', base_url: 'http://llm.example/v1', usage_id: 'agent' };
  const agent_context = { load_project_skills: true, ...context };
  const id = await server.client.start({ agent: { kind: 'Agent', llm, agent_context } });
  await server.client.talk(id, message);
  return id;
}

/** What an agent knows of them before it begins, by the settings that the engine had. */
async function promptOf(id: string): Promise<string> {
  const [settings] = await server.client.answers(id);
  return jsonText(JSON.parse(String(settings)), 'systemPromptSuffix') ?? '';
}
const prompt = async (): Promise<string> => await promptOf(await begin('settings'));

async function told(id: string): Promise<(string | null)[]> {
  const events = await server.client.events(id, '&kind=ConversationErrorEvent');
  return events
    .filter((event) => jsonText(event, 'code') === 'SkillUnreadable')
    .map((event) => {
      expect(jsonText(event, 'source')).toBe('environment');
      return jsonText(event, 'detail');
    });
}

describe('POST /api/skills', () => {
  it('finds the skills of a repository in all of their places', async () => {
    await put('AGENTS.md', 'Use tabs.');
    await put('.cursorrules', 'Be brief.');
    await put(
      '.agents/skills/release/SKILL.md',
      '---\nname: release\ndescription: How to release\n---\n# Do it\n',
    );
    await put('.agents/skills/release/references/more.md', 'belongs to the skill');
    await put('.openhands/skills/flaky.md', '---\ntriggers:\n  - flaky test\n---\nRun it three times.\n');
    await put('.openhands/microagents/repo.md', 'Old instructions.');
    await put('.openhands/microagents/README.md', 'nothing for agents');
    const { skills, names, sources } = await list();
    expect(names).toEqual(['cursorrules', 'agents', 'release', 'flaky', 'repo']);
    expect(sources).toEqual({ sandbox: 0, registered_marketplaces: 0, sdk_base: 0, org: 0, project: 5 });
    expect(skills[2]).toEqual({
      name: 'release',
      type: 'agentskills',
      content: '# Do it',
      triggers: [],
      source: path.join(repository, '.agents/skills/release/SKILL.md'),
      description: 'How to release',
      is_agentskills_format: true,
      disable_model_invocation: false,
    });
    expect(skills[3]).toMatchObject({
      type: 'knowledge',
      triggers: ['flaky test'],
      content: 'Run it three times.',
    });
    expect(skills[4]).toMatchObject({ type: 'repo', triggers: [], content: 'Old instructions.' });
  });

  it('finds the rules of the repository around a folder, and those of folders below it', async () => {
    await put('AGENTS.md', 'of the repository');
    await put('server/CLAUDE.md', 'of the server');
    await put('server/api/AGENTS.md', 'of the API');
    execFileSync('git', ['init', '-q'], { cwd: repository });
    const { skills } = await list({ project_dir: path.join(repository, 'server') });
    expect(skills.map((skill) => [jsonAt(skill, 'name'), jsonAt(skill, 'content')])).toEqual([
      ['claude', 'of the server'],
      ['agents', 'of the repository'],
      ['agents:api', 'of the API'],
    ]);
  });

  it('adds the skills of the user and where programs are reached', async () => {
    await put(path.join(home, '.openhands/skills/mine.md'), 'mine');
    const urls = [
      { name: 'AGENT_SERVER', url: 'http://agent', port: 8000 },
      { name: 'WORKER_1', url: 'http://one', port: 12_000 },
    ];
    const { skills, sources } = await list({ sandbox_config: { exposed_urls: urls } });
    expect(skills.map((skill) => jsonAt(skill, 'name'))).toEqual(['mine', 'work_hosts']);
    expect(jsonAt(skills[1], 'content')).toContain('http://one (port 12000)');
    expect(sources).toMatchObject({ sandbox: 1, sdk_base: 1, project: 0 });
    await rm(path.join(home, '.openhands'), { recursive: true, maxRetries: 10 });
  });

  it('refuses a folder outside of the workspace, and has nothing to say of one that is not there', async () => {
    expect((await server.client.post('/api/skills', { project_dir: '/etc' })).status).toBe(403);
    expect((await server.client.post('/api/skills', { project_dir: 'project' })).status).toBe(400);
    expect((await list({ project_dir: path.join(server.workspace, 'nowhere') })).names).toEqual([]);
    expect((await list({ project_dir: null })).names).toEqual([]);
  });
});

it('POST /api/hooks answers the hooks of a repository, or none', async () => {
  const hooks = {
    hooks: { PreToolUse: [{ matcher: '*', hooks: [{ type: 'command', command: 'true' }] }] },
  };
  await put('.openhands/hooks.json', JSON.stringify(hooks));
  const { body } = await server.client.post('/api/hooks', { project_dir: repository });
  expect(body).toEqual({ hook_config: hooks });
  await put('.openhands/hooks.json', 'no JSON');
  expect((await server.client.post('/api/hooks', { project_dir: repository })).body).toEqual({
    hook_config: null,
  });
  await rm(path.join(repository, '.openhands'), { recursive: true, maxRetries: 10 });
  expect((await server.client.post('/api/hooks', { project_dir: repository })).body).toEqual({
    hook_config: null,
  });
});

describe('a conversation with skills', () => {
  it('gives what its client sent and what the repository has, and a triggered skill once', async () => {
    await put('AGENTS.md', 'Use tabs.');
    await put('.openhands/skills/flaky.md', '---\ntriggers: [flaky]\n---\nRun it three times.\n');
    await put('.openhands/skills/off.md', 'not wanted');
    const id = await begin('settings for the FLAKY test', {
      disabled_skills: ['off'],
      user_message_suffix: 'Answer in verse.',
      system_message_suffix: 'The client said so.',
      skills: [{ name: 'given', content: 'Given by the client.', trigger: null }],
    });
    const suffix = await promptOf(id);
    expect(suffix).toContain('Given by the client.');
    expect(suffix).toContain('Use tabs.');
    expect(suffix).toContain('- flaky: Run it three times.');
    expect(suffix).not.toContain('not wanted');
    expect(suffix.endsWith('The client said so.')).toBe(true);
    await server.client.talk(id, 'say Is it still flaky?');
    const messages = await server.client.events(id, '&kind=MessageEvent&source=user');
    expect(messages.map((event) => jsonAt(event, 'activated_skills'))).toEqual([['flaky'], []]);
    expect(JSON.stringify(jsonAt(messages[0], 'extended_content'))).toContain('Run it three times.');
    expect(jsonAt(messages[1], 'extended_content')).toEqual([{ type: 'text', text: 'Answer in verse.' }]);
    const info = await server.client.info(id);
    expect(jsonAt(info, 'activated_knowledge_skills')).toEqual(['flaky']);
  });

  it('has none that nobody asked for', async () => {
    await put('AGENTS.md', 'Use tabs.');
    const id = await server.client.start();
    await server.client.talk(id, 'settings');
    expect(await promptOf(id)).toBe('');
  });
});

// vercel-labs/skills#1094 and #1525, BuilderIO/skills#38, secondsky/claude-skills#60: a skill with a typo is not there,
// and nothing says so.
describe('a skill that cannot be used is named with the reason, and the conversation goes on', () => {
  const SKILLS = '.openhands/skills';

  it('whatever is wrong with it', async () => {
    const broken: [string, string | Uint8Array, string][] = [
      ['a colon in a text', '---\ndescription: the rule: one\n---\ntext', 'not YAML'],
      ['a bracket without its other half', '---\nname: [\n---\ntext', 'not YAML'],
      ['tabs as indentation', '---\ntriggers:\n\t- foo\n---\ntext', 'not YAML'],
      ['no end of its frontmatter', '---\ntriggers: [foo]\ntext', 'no end'],
      ['the same with a byte order mark', '\uFEFF---\r\ntriggers: [foo]\r\ntext', 'no end'],
      ['frontmatter without bounds', `---\na: ${'x'.repeat(9_000)}\n---\ntext`, '8192 characters'],
      ['a name that is no text', '---\nname: {a: b}\n---\ntext', 'name'],
      ['aliases that multiply', `---\na: &a [x]\nb: [${'*a, '.repeat(50)}*a]\n---\ntext`, 'not YAML'],
      ['levels without end', `---\na: ${'['.repeat(4_000)}${']'.repeat(4_000)}\n---\ntext`, 'not YAML'],
      ['triggers of another kind', '---\ntriggers: {a: b}\n---\ntext', 'triggers must be'],
      ['a trigger that is no text', '---\ntriggers:\n- fix: bug\n---\ntext', 'triggers must be'],
      ['another encoding', Buffer.from('\uFEFF---\nname: a\n---\ntext', 'utf16le'), 'UTF-8'],
      ['too much text', 'x'.repeat(100_001), '100000 bytes'],
    ];
    await Promise.all(broken.map(([what, content], index) => put(`${SKILLS}/${index} ${what}.md`, content)));
    await put(`${SKILLS}/good.md`, 'text');
    const details = await told(await begin('hello foo'));
    for (const [index, [what, , reason]] of broken.entries()) {
      const file = path.join(repository, SKILLS, `${index} ${what}.md`);
      expect(details.filter((detail) => detail?.includes(file))).toEqual([expect.stringContaining(reason)]);
    }
    expect(details).toHaveLength(broken.length);
    expect((await list()).names).toEqual(['good']);
  });

  it('a name that is not its folder, a link that leaves the repository, one to nothing', async () => {
    await put('.agents/skills/release/SKILL.md', '---\nname: other\ndescription: x\n---\ntext');
    await put('../outside.md', 'not of this repository');
    await put('docs/shared.md', 'shared');
    await mkdir(path.join(repository, SKILLS), { recursive: true });
    await symlink('../../../outside.md', path.join(repository, SKILLS, 'bad.md'));
    await symlink('../../docs/shared.md', path.join(repository, SKILLS, 'shared.md'));
    await symlink('/etc/passwd', path.join(repository, 'AGENTS.md'));
    await symlink('nowhere.md', path.join(repository, SKILLS, 'gone.md'));
    expect(await told(await begin('hello foo'))).toEqual([
      expect.stringMatching(/AGENTS\.md is left out: it is a link that leaves/),
      expect.stringMatching(/release\/SKILL\.md is left out: its name must be that of its folder/),
      expect.stringMatching(/bad\.md is left out: it is a link that leaves/),
      expect.stringMatching(/gone\.md is left out: it is no file/),
    ]);
    expect((await list()).names).toEqual(['shared']);
  });

  it('at most twenty are named, and each only once', async () => {
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => put(`${SKILLS}/${index}.md`, '---\n: [\n---\n')),
    );
    const id = await begin('hello foo');
    const first = await told(id);
    expect(first).toHaveLength(21);
    expect(first.at(-1)).toBe('10 further skills are left out too.');
    await server.restart();
    await server.client.act(id, 'credentials', { llm_model: 'openai/fake', llm_api_key: 'key' });
    await server.client.talk(id, 'hello again');
    expect(await told(id)).toEqual(first);
  });

  it('those beyond the bound are not silent either', async () => {
    await Promise.all(Array.from({ length: 105 }, (_, index) => put(`${SKILLS}/s${index}.md`, 'text')));
    expect(await told(await begin('hello foo'))).toEqual([
      expect.stringContaining('only the first 100 files'),
    ]);
    expect((await list()).names).toHaveLength(100);
  });

  it('what is only unusual is read', async () => {
    const unusual: [string, string | Uint8Array, string[]][] = [
      ['a single trigger', '---\ntriggers: foo\n---\ntext', ['foo']],
      ['a number as a trigger', '---\ntriggers: [404]\n---\ntext', ['404']],
      ['a byte order mark and CRLF', '\uFEFF---\r\ntriggers: foo\r\n---\r\ntext\r\n', ['foo']],
      ['blanks behind the dashes', '--- \t\ntriggers:\t[foo]\n---  \ntext', ['foo']],
      ['a line of dashes, and no frontmatter', '---\nSome words.\n', []],
      ['one character that is no UTF-8', Buffer.from('---\ntriggers: foo\n---\nna\xefve', 'latin1'), ['foo']],
    ];
    await Promise.all(unusual.map(([what, content]) => put(`${SKILLS}/${what}.md`, content)));
    const id = await begin('hello foo');
    expect(await told(id)).toEqual([]);
    const found = (await list()).skills.map((skill) => [jsonAt(skill, 'name'), jsonAt(skill, 'triggers')]);
    expect(new Map(found as [unknown, unknown][])).toEqual(
      new Map(unusual.map(([what, , triggers]) => [what, triggers])),
    );
    const [message] = await server.client.events(id, '&kind=MessageEvent&source=user');
    expect(new Set(jsonList(message, 'activated_skills'))).toEqual(
      new Set(unusual.filter(([, , triggers]) => triggers.includes('foo')).map(([what]) => what)),
    );
  });
});

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
    const found = (await list()).contents;
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
    expect((await list()).contents.get('agents')).toBe(
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
    expect([...(await list()).contents.keys()]).toEqual(
      expect.arrayContaining(['agents', 'claude', 'gemini']),
    );
  });
});
