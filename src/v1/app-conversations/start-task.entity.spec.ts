import { describe, expect, it } from '@jest/globals';
import { sampleStartRequest } from '../../../test/support/sample-start-request.js';
import { type ConversationLimits, hasTokens, visibleSecrets, withinLimits } from './start-task.entity.js';

const reads = (...list: string[]): ConversationLimits => ({ repositories_read: list });
const ALL = { secret_names: null, git: 'write', agent_type: 'default' };

describe('what a child may', () => {
  it.each<[string, ConversationLimits, ConversationLimits, object]>([
    ['all that its parent may', {}, {}, {}],
    ['what it asks for', { secret_names: ['A'], git: 'read' }, {}, { secret_names: ['A'], git: 'read' }],
    ['no other secret', {}, { secret_names: ['A'] }, { secret_names: ['A'] }],
    ['no secret', { secret_names: null }, { secret_names: [] }, { secret_names: [] }],
    ['what both have', { secret_names: ['A', 'B'] }, { secret_names: ['B', 'C'] }, { secret_names: ['B'] }],
    ['no push', { git: 'write' }, { git: 'read' }, { git: 'read' }],
    ['what its parent is for', {}, { cause: { event: 'e' } }, { cause: { event: 'e' } }],
    ['what is of its own repository', {}, { own_repository: true }, { own_repository: true }],
    ['what its key leaves', { own_repository: true }, {}, { own_repository: true }],
    ['no fetch', { git: 'read' }, { git: 'none' }, { git: 'none' }],
    ['less than its parent', { git: 'none' }, { git: 'read' }, { git: 'none' }],
    ['a plan alone', { agent_type: 'default' }, { agent_type: 'plan' }, { agent_type: 'plan' }],
    ['reading what its parent reads', {}, reads('github:o/*'), reads('github:o/*')],
    ['reading less', reads('github:o/a', 'github:p/a'), reads('github:o/*'), reads('github:o/a')],
    ['no more reading', reads('github:o/*'), reads('github:o/a'), reads()],
    ['no reading at all', reads('github:o/a'), reads(), reads()],
    ['a plan that it asks for', { agent_type: 'plan' }, {}, { agent_type: 'plan' }],
  ])('%s', (_, asked, parent, expected) => {
    expect(withinLimits(sampleStartRequest(asked), parent)).toEqual({
      ...sampleStartRequest(),
      ...ALL,
      ...expected,
    });
  });
});

describe('the secrets of conversations together', () => {
  it.each<[string, ConversationLimits[], string[]]>([
    ['none', [], []],
    ['one without limits', [{}, { secret_names: [], git: 'none' }], ['A', 'B', 'GITHUB_TOKEN']],
    ['lists', [{ secret_names: ['A'] }, { secret_names: ['B'] }], ['A', 'B']],
    ['no push', [{ git: 'read' }], ['A', 'B']],
    ['of its own repository', [{ own_repository: true }], ['A', 'B']],
    ['no push of what is named', [{ git: 'none', secret_names: ['A', 'GITHUB_TOKEN'] }], ['A']],
    [
      'a push',
      [{ git: 'read', secret_names: ['A'] }, { secret_names: ['GITHUB_TOKEN'] }],
      ['A', 'GITHUB_TOKEN'],
    ],
  ])('%s', (_, all, expected) => {
    const isVisible = visibleSecrets(all);
    const names = ['A', 'B', 'GITHUB_TOKEN'];
    expect(names.filter((name) => isVisible(name, name === 'GITHUB_TOKEN'))).toEqual(expected);
  });
});

it.each<[ConversationLimits, boolean]>([
  [{}, true],
  [{ git: 'write', secret_names: null }, true],
  [{ git: 'read' }, false],
  [{ own_repository: true }, false],
  [{ secret_names: ['GITHUB_TOKEN'] }, false],
])('%j has the tokens: %s', (limits, expected) => {
  expect(hasTokens(limits)).toBe(expected);
});
