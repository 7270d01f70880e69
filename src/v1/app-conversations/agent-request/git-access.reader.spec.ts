import { describe, expect, it } from '@jest/globals';
import { gitIdentity } from './git-access.reader.js';

describe('gitIdentity', () => {
  it.each([
    ['Ada', 'ada@example.com', { name: 'Ada', email: 'ada@example.com' }],
    ['Ada', null, { name: 'Ada', email: 'agent@slipway.invalid' }],
    ['', 'ada@example.com', { name: 'ada', email: 'ada@example.com' }],
    [null, ' ', null],
    ['Ada\n[core]', ' ada@example.com ', { name: 'Ada [core]', email: 'ada@example.com' }],
  ])('%j, %j', (name, email, expected) => {
    expect(gitIdentity({ git_user_name: name, git_user_email: email })).toEqual(expected);
  });
});
