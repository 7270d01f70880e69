import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { toolEnvironment } from '../src/tool-view.js';
import { startTestAgentServer, type TestAgentServer } from './support/test-agent-server.js';

let server: TestAgentServer;
let repository: string;
let home: string;

beforeAll(async () => {
  server = await startTestAgentServer();
  home = path.join(server.folder, 'home');
  await mkdir(home);
  await server.restart({ environment: { ...toolEnvironment(process.env), HOME: home } });
  repository = path.join(server.workspace, 'project');
});
afterAll(() => server.stop());
afterEach(async () => {
  await rm(repository, { recursive: true, force: true, maxRetries: 10 });
});

async function put(file: string, text: string): Promise<void> {
  const target = path.resolve(repository, file);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, text);
}

async function list(members: Record<string, unknown> = {}) {
  const answer = await server.client.post('/api/skills', { project_dir: repository, ...members });
  expect(answer.status).toBe(200);
  return {
    skills: jsonList(answer.body, 'skills'),
    sources: jsonAt(answer.body, 'sources'),
    names: jsonList(answer.body, 'skills').map((skill) => jsonAt(skill, 'name')),
  };
}

/** Of the settings that the engine had. */
async function promptSuffix(id: string): Promise<string> {
  const [settings] = await server.client.answers(id);
  return jsonText(JSON.parse(String(settings)), 'systemPromptSuffix') ?? '';
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

  it('reads no file through a link that leaves the repository', async () => {
    await put('../outside.md', 'a secret of somebody else');
    await put('docs/shared.md', 'shared');
    await mkdir(path.join(repository, '.openhands/skills'), { recursive: true });
    await symlink('../../../outside.md', path.join(repository, '.openhands/skills/stolen.md'));
    await symlink('/etc/passwd', path.join(repository, 'AGENTS.md'));
    await symlink('../../docs/shared.md', path.join(repository, '.openhands/skills/shared.md'));
    expect((await list()).names).toEqual(['shared']);
  });

  it.each([
    ['frontmatter that is no YAML', '---\nname: [\n---\ntext'],
    ['a name that is no text', '---\nname: {a: b}\n---\ntext'],
    ['aliases that multiply', `---\na: &a [x]\nb: [${'*a, '.repeat(50)}*a]\n---\ntext`],
    ['levels without end', `---\na: ${'['.repeat(4_000)}${']'.repeat(4_000)}\n---\ntext`],
    ['long frontmatter', `---\na: ${'x'.repeat(9_000)}\n---\ntext`],
    ['triggers that are no list', '---\ntriggers: {a: b}\n---\ntext'],
    ['more than 100 KB', 'x'.repeat(100_001)],
  ])('leaves out a skill with %s, and only that', async (_what, text) => {
    await put('.openhands/skills/bad.md', text);
    await put('.openhands/skills/good.md', 'text');
    expect((await list()).names).toEqual(['good']);
  });

  it('reads a bounded number of files', async () => {
    await Promise.all(
      Array.from({ length: 101 }, (_, index) => put(`.openhands/skills/s${String(index)}.md`, 'text')),
    );
    expect((await list()).names).toHaveLength(100);
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

describe('POST /api/hooks', () => {
  it('answers the hooks of a repository, or none', async () => {
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
});

describe('a conversation with skills', () => {
  const withContext = (context: Record<string, unknown>) => ({
    agent: {
      kind: 'Agent',
      llm: { model: 'openai/fake', api_key: 'key', base_url: 'http://llm.example/v1', usage_id: 'agent' },
      agent_context: context,
    },
  });

  it('gives what its client sent and what the repository has, and a triggered skill once', async () => {
    await put('AGENTS.md', 'Use tabs.');
    await put('.openhands/skills/flaky.md', '---\ntriggers: [flaky]\n---\nRun it three times.\n');
    await put('.openhands/skills/off.md', 'not wanted');
    const id = await server.client.start(
      withContext({
        load_project_skills: true,
        disabled_skills: ['off'],
        user_message_suffix: 'Answer in verse.',
        system_message_suffix: 'The client said so.',
        skills: [{ name: 'given', content: 'Given by the client.', trigger: null }],
      }),
    );
    await server.client.talk(id, 'settings for the FLAKY test');
    const suffix = await promptSuffix(id);
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
    expect(await promptSuffix(id)).toBe('');
  });
});
