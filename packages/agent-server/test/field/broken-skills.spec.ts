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

const SKILLS = '.openhands/skills';
const BAD = `${SKILLS}/bad.md`;

async function put(file: string, content: string | Uint8Array): Promise<void> {
  const target = path.join(repository, file);
  await mkdir(path.dirname(target), { recursive: true });
  await writeFile(target, content);
}

async function begin(): Promise<string> {
  const id = await server.client.start({
    agent: {
      kind: 'Agent',
      llm: { model: 'openai/fake', api_key: 'key', base_url: 'http://llm.example/v1', usage_id: 'agent' },
      agent_context: { load_project_skills: true },
    },
  });
  await say(id, 'hello foo');
  return id;
}

async function say(id: string, text: string): Promise<void> {
  await server.client.say(id, text);
  await server.client.untilStatus(id, 'finished');
}

/** What was told about skills. */
async function told(id: string): Promise<(string | null)[]> {
  const events = await server.client.events(id, '&kind=ConversationErrorEvent');
  return events
    .filter((event) => jsonText(event, 'code') === 'SkillUnreadable')
    .map((event) => {
      expect(jsonText(event, 'source')).toBe('environment');
      return jsonText(event, 'detail');
    });
}

async function names(): Promise<[unknown, unknown][]> {
  const { body } = await server.client.post('/api/skills', { project_dir: repository, load_user: false });
  return jsonList(body, 'skills').map((skill) => [jsonAt(skill, 'name'), jsonAt(skill, 'triggers')]);
}

// vercel-labs/skills#1094 and #1525, BuilderIO/skills#38, secondsky/claude-skills#60: a skill with a typo is not there,
// and nothing says so.
describe('a skill that cannot be used is named with the reason, and the conversation goes on', () => {
  it('whatever is wrong with it', async () => {
    const broken: [string, string | Uint8Array, string][] = [
      ['a colon in a text', '---\ndescription: the rule: one\n---\ntext', 'not YAML'],
      ['a bracket without its other half', '---\nname: [\n---\ntext', 'not YAML'],
      ['tabs as indentation', '---\ntriggers:\n\t- foo\n---\ntext', 'not YAML'],
      ['no end of its frontmatter', '---\ntriggers: [foo]\ntext', 'no end'],
      ['the same with a byte order mark', '\uFEFF---\r\ntriggers: [foo]\r\ntext', 'no end'],
      ['frontmatter without bounds', `---\na: ${'x'.repeat(9_000)}\n---\ntext`, '8192 characters'],
      ['triggers of another kind', '---\ntriggers: {a: b}\n---\ntext', 'triggers must be'],
      ['a trigger that is no text', '---\ntriggers:\n- fix: bug\n---\ntext', 'triggers must be'],
      ['another encoding', Buffer.from('\uFEFF---\nname: a\n---\ntext', 'utf16le'), 'UTF-8'],
      ['too much text', 'x'.repeat(100_001), '100000 bytes'],
    ];
    await Promise.all(broken.map(([what, content], index) => put(`${SKILLS}/${index} ${what}.md`, content)));
    await put(`${SKILLS}/good.md`, 'text');
    const details = await told(await begin());
    for (const [index, [what, , reason]] of broken.entries()) {
      const file = path.join(repository, SKILLS, `${index} ${what}.md`);
      expect(details.filter((detail) => detail?.includes(file))).toEqual([expect.stringContaining(reason)]);
    }
    expect(details).toHaveLength(broken.length);
    expect(await names()).toEqual([['good', []]]);
  });

  it('a name that is not its folder, a link that leaves the repository, one to nothing', async () => {
    await put('.agents/skills/release/SKILL.md', '---\nname: other\ndescription: x\n---\ntext');
    await put('../outside.md', 'not of this repository');
    await mkdir(path.join(repository, SKILLS), { recursive: true });
    await symlink('../../../outside.md', path.join(repository, BAD));
    await symlink('nowhere.md', path.join(repository, SKILLS, 'gone.md'));
    expect(await told(await begin())).toEqual([
      expect.stringMatching(/release\/SKILL\.md is left out: its name must be that of its folder/),
      expect.stringMatching(/bad\.md is left out: it is a link that leaves/),
      expect.stringMatching(/gone\.md is left out: it is no file/),
    ]);
  });

  it('at most twenty are named, and each only once', async () => {
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => put(`${SKILLS}/${index}.md`, '---\n: [\n---\n')),
    );
    const id = await begin();
    const first = await told(id);
    expect(first).toHaveLength(21);
    expect(first.at(-1)).toBe('10 further skills are left out too.');
    await server.restart();
    await server.client.post(`/api/conversations/${id}/credentials`, {
      llm_model: 'openai/fake',
      llm_api_key: 'key',
    });
    await say(id, 'hello again');
    expect(await told(id)).toEqual(first);
  });

  it('those beyond the bound are not silent either', async () => {
    await Promise.all(Array.from({ length: 105 }, (_, index) => put(`${SKILLS}/s${index}.md`, 'text')));
    expect(await told(await begin())).toEqual([expect.stringContaining('only the first 100 files')]);
  });
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
  const id = await begin();
  expect(await told(id)).toEqual([]);
  expect(new Map(await names())).toEqual(new Map(unusual.map(([what, , triggers]) => [what, triggers])));
  const [message] = await server.client.events(id, '&kind=MessageEvent&source=user');
  expect(new Set(jsonList(message, 'activated_skills'))).toEqual(
    new Set(unusual.filter(([, , triggers]) => triggers.includes('foo')).map(([what]) => what)),
  );
});
