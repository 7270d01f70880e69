import { describe, expect, it } from '@jest/globals';
import { hasAgentInstructions, type InstructionFiles } from './agent-instructions.js';

describe('hasAgentInstructions', () => {
  it.each<[string, boolean, Partial<InstructionFiles>]>([
    ['nothing', false, {}],
    ['ordinary root entries', false, { rootEntries: ['README.md', 'src', 'package.json'] }],
    ['AGENTS.md', true, { rootEntries: ['src', 'AGENTS.md'] }],
    ['AGENT.md', true, { rootEntries: ['AGENT.md'] }],
    ['CLAUDE.md', true, { rootEntries: ['CLAUDE.md'] }],
    ['GEMINI.md', true, { rootEntries: ['GEMINI.md'] }],
    ['.cursorrules', true, { rootEntries: ['.cursorrules'] }],
    ['.openhands_instructions', true, { rootEntries: ['.openhands_instructions'] }],
    ['any case', true, { rootEntries: ['Agents.MD'] }],
    ['a name that only begins so', false, { rootEntries: ['AGENTS.md.bak', 'MY-AGENTS.md'] }],
    ['only the folder .openhands', false, { rootEntries: ['.openhands'] }],
    ['a microagent', true, { microagents: ['repo.md'] }],
    ['a skill', true, { skills: ['Deploy.MD'] }],
    ['only a README microagent', false, { microagents: ['README.md'] }],
    ['only a readme skill', false, { skills: ['readme.md'] }],
    ['a README beside a microagent', true, { microagents: ['README.md', 'glossary.md'] }],
    ['no Markdown', false, { microagents: ['setup.sh', 'md'], skills: ['notes.txt'] }],
    ['a repository .openhands', true, { repository: 'octo/.openhands' }],
    ['a repository openhands-config', true, { repository: 'group/sub/openhands-config' }],
    ['an owner openhands-config', false, { repository: 'openhands-config/app' }],
    ['a repository that only ends so', false, { repository: 'octo/my.openhands' }],
  ])('%s: %s', (_name, expected, files) => {
    expect(
      hasAgentInstructions({
        repository: 'octo/app',
        rootEntries: [],
        microagents: [],
        skills: [],
        ...files,
      }),
    ).toBe(expected);
  });
});
