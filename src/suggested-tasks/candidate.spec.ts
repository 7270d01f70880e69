import { describe, expect, it } from '@jest/globals';
import type { Candidate } from './collect-candidates.js';
import { rankTasks } from './collect-candidates.js';

let serial = 0;

function task(name: string, overrides: Partial<Candidate> = {}): Candidate & { name: string } {
  serial += 1;
  return {
    name,
    provider: 'github',
    type: 'OPEN_PR',
    repository: 'acme/app',
    number: 1,
    title: 'same',
    url: null,
    updatedAt: 1,
    repositoryActiveAt: 1,
    identity: `item ${serial}`,
    ...overrides,
  };
}

function names(tasks: readonly Candidate[]): string[] {
  return tasks.map((candidate) => (candidate as Candidate & { name: string }).name);
}

const CASES: [string, Candidate[]][] = [
  [
    'repository recency before type',
    [
      task('newer repository', { repositoryActiveAt: 9, type: 'CREATE_MICROAGENT' }),
      task('older repository', { repositoryActiveAt: 8, type: 'MERGE_CONFLICTS' }),
      task('no time at all', { repositoryActiveAt: -Infinity, type: 'MERGE_CONFLICTS' }),
    ],
  ],
  [
    'type before update time',
    [
      task('conflicts', { type: 'MERGE_CONFLICTS', updatedAt: 1 }),
      task('failing', { type: 'FAILING_CHECKS', updatedAt: 2 }),
      task('unresolved', { type: 'UNRESOLVED_COMMENTS', updatedAt: 3 }),
      task('issue', { type: 'OPEN_ISSUE', updatedAt: 4 }),
      task('pull request', { type: 'OPEN_PR', updatedAt: 5 }),
      task('instructions', { type: 'CREATE_MICROAGENT', updatedAt: 6 }),
    ],
  ],
  [
    'update time before number',
    [task('newer', { updatedAt: 5, number: 1 }), task('older', { updatedAt: 4, number: 9 })],
  ],
  [
    'number before provider',
    [
      task('higher', { number: 9, provider: 'enterprise_sso' }),
      task('lower', { number: 8, provider: 'github' }),
    ],
  ],
  [
    'provider before name',
    [
      task('github', { provider: 'github', repository: 'z/z' }),
      task('gitlab', { provider: 'gitlab', repository: 'y/y' }),
      task('bitbucket', { provider: 'bitbucket', repository: 'x/x' }),
      task('sso', { provider: 'enterprise_sso', repository: 'a/a' }),
    ],
  ],
  ['name last', [task('a', { repository: 'a/a' }), task('b', { repository: 'b/b' })]],
];

describe('rankTasks', () => {
  it.each(CASES)('%s, whatever order they come in', (_name, expected) => {
    expect(names(rankTasks(expected.toReversed()))).toEqual(names(expected));
    expect(names(rankTasks(expected))).toEqual(names(expected));
  });

  it('keeps one entry per item; a direct token wins over enterprise_sso', () => {
    const direct = task('direct', { identity: 'same', provider: 'github' });
    const brokered = task('brokered', { identity: 'same', provider: 'enterprise_sso' });

    expect(names(rankTasks([brokered, direct]))).toEqual(['direct']);
    expect(names(rankTasks([direct, brokered]))).toEqual(['direct']);
  });
});
