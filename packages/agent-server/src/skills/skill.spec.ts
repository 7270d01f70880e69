import { describe, expect, it } from '@jest/globals';
import {
  matchedWord,
  mergeSkills,
  type Skill,
  type SkillTrigger,
  skillsForFile,
  skillsPrompt,
  triggeredSkills,
} from './skill.js';

function skill(name: string, members: Partial<Skill> = {}): Skill {
  return {
    name,
    content: `content of ${name}`,
    source: `/repo/${name}.md`,
    description: null,
    trigger: null,
    isAgentSkill: false,
    isHidden: false,
    ...members,
  };
}

it.each([
  ['git', 'Use git, please', 'git'],
  ['git', 'Use github', null],
  ['git', 'legit github git', 'git'],
  ['Flaky Test', 'a flaky test fails', 'Flaky Test'],
  ['/release', 'run /release now', '/release'],
  ['', 'anything', null],
])('matchedWord finds %j in %j: %j', (word, message, found) => {
  expect(matchedWord(skill('a', { trigger: { kind: 'words', words: [word] } }), message)).toBe(found);
});

it('mergeSkills keeps the first of a name', () => {
  const merged = mergeSkills([skill('a')], [skill('a', { content: 'other' }), skill('b')]);
  expect(merged.map(({ name, content }) => [name, content])).toEqual([
    ['a', 'content of a'],
    ['b', 'content of b'],
  ]);
});

describe('skillsPrompt', () => {
  const words: SkillTrigger = { kind: 'words', words: ['x'] };
  const paths: SkillTrigger = { kind: 'paths', globs: ['docs/**'] };

  it('gives rules whole and lists everything else by its kind', () => {
    const prompt = skillsPrompt(
      [
        skill('agents'),
        skill('sometimes', { trigger: words }),
        skill('release', { isAgentSkill: true, description: 'How to\nrelease' }),
        skill('secretive', { trigger: words, isHidden: true }),
        skill('agents:docs', { trigger: paths, isHidden: true }),
      ],
      'openai/gpt-5',
    );
    expect(prompt).toContain('[BEGIN context from agents]\ncontent of agents\n[END context]');
    expect(prompt).toContain('- sometimes: content of sometimes (/repo/sometimes.md)');
    expect(prompt).toContain('- release: How to release (/repo/release.md)');
    expect(prompt).toContain('- docs/**: /repo/agents:docs.md');
    expect(prompt).not.toContain('secretive');
    expect(prompt).not.toContain('content of agents:docs');
  });

  it.each([
    ['claude', 'anthropic/claude-x', true],
    ['claude', 'openai/gpt-5', false],
    ['gemini', 'anthropic/claude-x', false],
    ['gemini', 'some/model', true],
  ])('gives the rules for %s to %s: %j', (name, model, isGiven) => {
    expect(skillsPrompt([skill(name)], model) !== null).toBe(isGiven);
  });

  it('is nothing without skills', () => {
    expect(skillsPrompt([], 'm')).toBeNull();
  });
});

describe('skillsForFile', () => {
  const rule = (...globs: string[]): Skill =>
    skill('rule', { trigger: { kind: 'paths', globs }, isHidden: true });
  const given = (glob: string, file: string): boolean =>
    skillsForFile([rule(glob)], '/workspace/project', file, []) !== null;

  it.each([
    ['notes/**', 'notes/a.md', true],
    ['notes/**', 'notes/deep/a.md', true],
    ['notes/**', 'src/notes.md', false],
    ['*.ts', 'src/deep/a.ts', true],
    ['./src/*.ts', 'src/a.ts', true],
    ['src/*.{ts,tsx}', 'src/a.tsx', true],
    ['src/*.ts', 'src/deep/a.ts', false],
    ['**/*.ts', '../other/a.ts', false],
    ['*'.repeat(90), 'a.ts', false],
    ['{a,b}'.repeat(40), 'a.ts', false],
    ['{1..99999}', '1', false],
    ['+(+(a))', 'aaa', false],
  ])('%s, %s: %j', (glob, file, isGiven) => {
    expect(given(glob, `/workspace/project/${file}`)).toBe(isGiven);
  });

  it('gives each once, with the place that paths in it begin at', () => {
    const found = skillsForFile([rule('*.md')], '/workspace', '/workspace/a.md', []);
    expect(found?.names).toEqual(['rule']);
    expect(found?.text).toMatch(/for files such as a\.md.*It is in \/repo\/rule\.md.*content of rule/s);
    expect(skillsForFile([rule('*.md')], '/workspace', '/workspace/a.md', ['rule'])).toBeNull();
  });
});

describe('triggeredSkills', () => {
  const skills = ['one', 'two'].map((name) =>
    skill(name, { trigger: { kind: 'words', words: [name] }, isHidden: name === 'two' }),
  );

  it('gives the skills that a message names, hidden ones too', () => {
    const triggered = triggeredSkills(skills, 'One and two', []);
    expect(triggered?.names).toEqual(['one', 'two']);
    expect(triggered?.text).toContain('content of two');
  });

  it('gives none twice', () => {
    expect(triggeredSkills(skills, 'One and two', ['one'])?.names).toEqual(['two']);
    expect(triggeredSkills(skills, 'one', ['one'])).toBeNull();
  });
});
