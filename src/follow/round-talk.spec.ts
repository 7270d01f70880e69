import { expect, it } from '@jest/globals';
import { namedIn } from './round-talk.js';

it.each<[string, string, number | null]>([
  ['Opened https://github.com/octo/app/pull/17.', 'octo/app', 17],
  ['Opened https://github.com/Octo/App/pull/17, see https://github.com/octo/app/pull/17#c1', 'octo/app', 17],
  ['https://gitlab.com/octo/deep/app/-/merge_requests/17', 'octo/deep/app', 17],
  ['https://bitbucket.org/octo/app/pull-requests/17', 'octo/app', 17],
  ['https://git.example.com/projects/OCTO/repos/app/pull-requests/17/overview', 'OCTO/app', 17],
  ['Like https://github.com/octo/app/pull/3: https://github.com/octo/app/pull/17', 'octo/app', null],
  ['https://github.com/octo/other/pull/17', 'octo/app', null],
  ['https://github.com/octo/app/issues/17', 'octo/app', null],
  ['https://github.com/octo/xapp/pull/17', 'o.to/app', null],
  ['Done.', 'octo/app', null],
])('%s names of %s: %j', (text, repository, number) => {
  expect(namedIn(text, repository)).toBe(number);
});
