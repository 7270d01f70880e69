import { describe, expect, it } from '@jest/globals';
import { startsInHead } from '../start-task.entity.js';
import {
  type ForkHead,
  headBranch,
  isForeign,
  pushedFork,
  type WorkPlace,
  workPlaceNote,
} from './work-place.js';

const HEAD: ForkHead = {
  repository: 'jane/app',
  number: 12,
  branch: 'parser',
  targetBranch: 'main',
  ref: 'refs/pull/12/head',
  allowsMaintainers: false,
};
const GONE = { ...HEAD, repository: null };

describe('where a conversation works', () => {
  it.each<[string, WorkPlace, boolean, boolean, string | null, RegExp]>([
    [
      "in the user's fork",
      { head: HEAD, push: 'head' },
      false,
      true,
      'jane/app',
      /origin is the fork, upstream is octo\/app, and it goes to upstream\/main\. What is pushed to parser/,
    ],
    [
      "from a stranger's fork, in the repository",
      { head: HEAD, push: 'repository' },
      true,
      false,
      null,
      /are not run\. There is no right to push to that fork: a branch of another name is pushed to octo\/app/,
    ],
    [
      "from a stranger's fork, in the user's",
      { head: HEAD, push: 'fork', fork: 'mona/app' },
      true,
      false,
      'mona/app',
      /There is no right to push to jane\/app: a branch of another name is pushed to a fork of the user's/,
    ],
    [
      'in a fork that will be made',
      { head: null, push: 'fork' },
      false,
      false,
      null,
      /^There is no right to push to octo\/app/,
    ],
    [
      'on a deleted fork',
      { head: GONE, push: 'none', because: 'deleted' },
      true,
      true,
      null,
      /what the host keeps of it is checked out as pull-12\. Nothing can be pushed to it\.$/,
    ],
    [
      'on a deleted fork of which nothing is kept',
      { head: { ...GONE, ref: null }, push: 'none', because: 'deleted' },
      true,
      false,
      null,
      /the default branch is checked out/,
    ],
    [
      'where it may only read',
      { head: HEAD, push: 'none', because: 'git' },
      true,
      true,
      null,
      /it goes to upstream\/main\. Its setup\.sh and pre-commit\.sh are not run\.$/,
    ],
    [
      'where no fork is made',
      { head: null, push: 'none', because: 'never' },
      false,
      false,
      null,
      /^There is no right to push to octo\/app, and fork is never: nothing can be pushed\.$/,
    ],
  ])('%s', (_where, place, foreign, inHead, fork, note) => {
    expect([isForeign(place), startsInHead(place), pushedFork(place)]).toEqual([foreign, inHead, fork]);
    expect(workPlaceNote('octo/app', place)).toMatch(note);
  });

  it('calls a branch as its fork does, unless that is gone', () => {
    expect([headBranch(HEAD), headBranch(GONE)]).toEqual(['parser', 'pull-12']);
  });
});
