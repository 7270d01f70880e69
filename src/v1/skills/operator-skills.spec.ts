import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { useFolder } from '../../../test/support/use-folder.js';
import { readOperatorSkills } from './operator-skills.js';

describe('readOperatorSkills', () => {
  const folder = useFolder();

  async function write(name: string, text: string): Promise<void> {
    await mkdir(path.dirname(path.join(folder.path, name)), { recursive: true });
    await writeFile(path.join(folder.path, name), text);
  }

  it('reads files and folders by name, and nothing else', async () => {
    await write('tests.md', 'Run the tests.');
    await write(
      'changes.md',
      '---\nname: change-log\ndescription: Lines\ntriggers:\n- changelog\n- release\n---\nOne line each.\n',
    );
    await write('deploy/SKILL.md', '---\ntriggers: deploy\n---\nUse the staging host.');
    await write('README.md', 'What is here');
    await write('.git/config', '');
    await write('notes.txt', 'x');

    expect(await readOperatorSkills(folder.path)).toEqual([
      {
        name: 'change-log',
        description: 'Lines',
        content: 'One line each.',
        triggers: ['changelog', 'release'],
      },
      { name: 'deploy', description: null, content: 'Use the staging host.', triggers: ['deploy'] },
      { name: 'tests', description: null, content: 'Run the tests.', triggers: [] },
    ]);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ['a head that is not YAML', { 'a.md': '---\n: [\n---\nx' }, /a\.md: its frontmatter is not YAML/],
    ['a head without an end', { 'a.md': '---\nname: a\nx' }, /a\.md: its frontmatter has no end/],
    [
      'triggers that are not strings',
      { 'a.md': '---\ntriggers: [1]\n---\nx' },
      /a\.md: its triggers must be/,
    ],
    ['an empty file', { 'a.md': '---\nname: a\n---\n' }, /a\.md: it is empty/],
    ['a folder without a skill', { 'a/other.md': 'x' }, /SKILL\.md: ENOENT/],
    [
      'a name that is too long',
      { 'a.md': `---\nname: ${'a'.repeat(201)}\n---\nx` },
      /its name has more than 200/,
    ],
    ['the same name twice', { 'a.md': 'x', 'a/SKILL.md': 'y' }, /two skills have the same name/],
    ['more text than prompts should hold', { 'a.md': 'x'.repeat(1_000_001) }, /at most 100 skills/],
  ])('refuses %s in one line', async (_name, files, message) => {
    for (const [name, text] of Object.entries(files)) {
      await write(name, text);
    }

    await expect(readOperatorSkills(folder.path)).rejects.toThrow(message);
    await expect(readOperatorSkills(folder.path)).rejects.toThrow(/^SKILLS_DIR: [^\n]+$/);
  });

  it('refuses a folder that does not exist', async () => {
    await expect(readOperatorSkills(path.join(folder.path, 'none'))).rejects.toThrow(/^SKILLS_DIR: .*ENOENT/);
  });
});
