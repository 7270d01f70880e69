import { describe, expect, it } from '@jest/globals';
import type { ProviderType } from '../git-provider.types.js';
import { tokenShapeProblem } from './token-shape.js';

describe('tokenShapeProblem', () => {
  it.each<[string, ProviderType, string | null, string]>([
    ['a classic token', 'github', null, 'ghp_16C7e42F292c6912E7710c838347Ae178B4a'],
    ['a fine-grained token', 'github', null, 'github_pat_11ABCDEFG0abcdefghijkl_x'],
    ['an OAuth token', 'github', null, 'gho_abc'],
    ['an old hexadecimal token', 'github', 'ghe.example.com', '0123456789abcdef0123456789abcdef01234567'],
    ['a one-character token', 'github', null, 'x'],
    ['a token of 8 KiB', 'enterprise_sso', null, 'j'.repeat(8192)],
    ['a prefix in the middle', 'github', null, 'xghs_abc'],
    ["another provider's refused prefix", 'gitlab', null, 'ghs_abc'],
    ['a personal token', 'gitlab', null, 'glpat-abc_DEF-123'],
    ['a routable token', 'gitlab', 'gitlab.example.com', 'glpat-abc.01.120abcdef'],
    ['an OAuth token without prefix', 'gitlab', null, 'ABCdef0123'],
    ['e-mail and API token', 'bitbucket', null, 'mona@example.com:ATATT3xFfGF0abc=1234'],
    ['a tagged e-mail address', 'bitbucket', null, "o'neil+ci@mail.example.co.uk:ATATT3x"],
    ['an access token', 'bitbucket', null, 'ATCTT3xFfGN0abc=1234'],
    ['an OAuth token', 'bitbucket', null, 'Abc-def_123='],
    ['a Data Center token', 'bitbucket', 'git.example.com', 'NjM2NTg5OTk1'],
    ['a Data Center token with a colon', 'bitbucket', 'git.example.com', 'mona:secret'],
    ['a Data Center token that looks like an API token', 'bitbucket', 'git.example.com', 'ATATT3x'],
    ['a JSON Web Token', 'enterprise_sso', null, 'eyJhbGciOi.eyJzdWIi.c2ln-_'],
  ])('takes %s (%s, host %s)', (_name, provider, host, token) => {
    expect(tokenShapeProblem(provider, host, token)).toBeNull();
  });

  const GENERAL = /ASCII letters, digits and punctuation/;
  const EMAIL_FORM = /email:api_token/;
  const APP_PASSWORD = /email:api_token.*app passwords ended on 2026-07-28/;

  it.each<[string, ProviderType, string | null, string, RegExp]>([
    ['an empty token', 'github', null, '', GENERAL],
    ['a space inside', 'github', null, 'ghp_SECRET 1', GENERAL],
    ['a trailing line break', 'github', null, 'ghp_SECRET\n', GENERAL],
    ['a header injection', 'gitlab', null, 'SECRET\r\nX-Evil: 1', GENERAL],
    ['a tab', 'bitbucket', 'git.example.com', 'SEC\tRET', GENERAL],
    ['a NUL', 'enterprise_sso', null, 'SECRET\u0000', GENERAL],
    ['DEL', 'gitlab', null, 'SECRET\u007f', GENERAL],
    ['a no-break space', 'gitlab', null, 'SECRET\u00a0', GENERAL],
    ['a zero-width space', 'gitlab', null, 'SECRET\u200b', GENERAL],
    ['a letter outside ASCII', 'github', null, 'ghp_SECRETé', GENERAL],
    ['more than 8 KiB', 'github', null, 'SECRET'.repeat(1366), /at most 8192 bytes/],
    ['an installation token', 'github', null, 'ghs_SECRET', /personal access token \(ghp_/],
    ['an installation token of a server', 'github', 'ghe.example.com', 'ghs_SECRET', /personal access token/],
    ['a job token', 'gitlab', null, 'glcbt-64_SECRET', /personal access token \(glpat-/],
    ['a deploy token', 'gitlab', 'gitlab.example.com', 'gldt-SECRET', /personal access token/],
    ['a runner token', 'gitlab', null, 'glrt-SECRET', /personal access token/],
    ['a registered runner token', 'gitlab', null, 'glrtr-SECRET', /personal access token/],
    ['a trigger token', 'gitlab', null, 'glptt-SECRET', /personal access token/],
    ['a bare API token', 'bitbucket', null, 'ATATT3xSECRET', EMAIL_FORM],
    ['an app password', 'bitbucket', null, 'mona:SECRET', APP_PASSWORD],
    ['an app password without user', 'bitbucket', null, 'ATBBSECRET', APP_PASSWORD],
    ['an app password with e-mail', 'bitbucket', null, 'mona@example.com:ATBBSECRET', APP_PASSWORD],
    ['a user name and API token', 'bitbucket', null, 'mona:ATATT3xSECRET', APP_PASSWORD],
    ['an empty user', 'bitbucket', null, ':ATATT3xSECRET', EMAIL_FORM],
    ['an e-mail without token', 'bitbucket', null, 'SECRET@example.com:', EMAIL_FORM],
    ['two colons', 'bitbucket', null, 'mona@example.com:SECRET:SECRET', EMAIL_FORM],
    ['two at signs', 'bitbucket', null, 'mona@SECRET@example.com:x', EMAIL_FORM],
    ["git's user for access tokens", 'bitbucket', null, 'x-token-auth:SECRET', /without the user name/],
    [
      "git's user for API tokens",
      'bitbucket',
      null,
      'x-bitbucket-api-token-auth:SECRET',
      /without the user name/,
    ],
  ])('refuses %s (%s, host %s)', (_name, provider, host, token, sentence) => {
    const problem = tokenShapeProblem(provider, host, token);

    expect(problem).toMatch(sentence);
    expect(problem).not.toContain('SECRET');
    expect(problem).toMatch(/\.$/);
  });
});
