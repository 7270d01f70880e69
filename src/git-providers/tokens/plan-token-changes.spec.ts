import { describe, expect, it } from '@jest/globals';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';
import {
  HOST_REFUSED,
  planTokenChanges,
  type NewRenewal,
  type ProviderTokenInput,
  type TokenPlan,
  tokenShapeProblem,
} from './plan-token-changes.js';

const NOW = Date.UTC(2026, 10, 30);

type Inputs = Partial<Record<ProviderType, ProviderTokenInput | null>>;

function toMap<T>(record: Partial<Record<ProviderType, T>>): Map<ProviderType, T> {
  return new Map(Object.entries<T>(record) as [ProviderType, T][]);
}

function plan(
  inputs: Inputs,
  stored: Partial<Record<ProviderType, string | null>> = {},
  sso = true,
): TokenPlan {
  return planTokenChanges(toMap(inputs), {
    allowlist: HostAllowlist.parse(['git.example.com', '*.corp.example']),
    storedHosts: toMap(stored),
    usable: PROVIDER_TYPES.filter((provider) => sso || provider !== 'enterprise_sso'),
    renewable: ['gitlab'],
    now: NOW,
    standInProblem: null,
    loc: ['body', 'provider_tokens'],
  });
}

function problemPlaces({ problems }: TokenPlan): string[] {
  return problems.map(({ loc, type }) => `${loc.join('.')} ${type}`);
}

type Stored = Partial<Record<ProviderType, string | null>>;

const OWN = 'git.example.com';
const set = (
  provider: ProviderType,
  token: string,
  host: string | null,
  accountId: string | null = null,
  renewal: NewRenewal | null = null,
) => ({
  kind: 'set' as const,
  provider,
  token,
  host,
  accountId,
  renewal,
});

describe('planTokenChanges', () => {
  it.each<[string, Inputs, Stored, ...TokenPlan['changes']]>([
    ['nothing for an empty map', {}, { github: null }],
    ['a removal for null', { github: null }, { github: null }, { kind: 'remove', provider: 'github' }],
    ['nothing for an empty entry', { github: {} }, { github: OWN }],
    ['nothing for blanks', { github: { token: ' ', host: '\t', user_id: '' } }, { github: OWN }],
    ['nothing for blanks with nothing stored', { github: { token: '', host: '' } }, {}],
    ['nothing for the public host with nothing stored', { github: { token: '', host: 'github.com' } }, {}],
    [
      'nothing for a blank token beside the stored host',
      { gitlab: { token: null, host: 'HTTPS://Git.Example.Com/' } },
      { gitlab: OWN },
    ],
    [
      'a new account id beside a blank token',
      { github: { token: '', user_id: '7' } },
      { github: null },
      { kind: 'account', provider: 'github', accountId: '7' },
    ],
    [
      'a new token at the default host when the host is blank, whatever host was stored',
      { github: { token: 'ghp_a', host: '' } },
      { github: OWN },
      set('github', 'ghp_a', null),
    ],
    [
      'a new token at the canonical form of its host',
      { gitlab: { token: 'glpat-a', host: 'https://GIT.example.com:443/root/', user_id: '7' } },
      {},
      set('gitlab', 'glpat-a', 'git.example.com/root', '7'),
    ],
    [
      'a token that is renewed before it ends',
      { gitlab: { token: 'a', refresh_token: 'b', expires_at: new Date(NOW + 1) } },
      {},
      set('gitlab', 'a', null, null, { refreshToken: 'b', expiresAt: new Date(NOW + 1) }),
    ],
    [
      'a token that is renewed at once where its end is not known',
      { gitlab: { token: 'a', refresh_token: 'b' } },
      { gitlab: OWN },
      set('gitlab', 'a', null, null, { refreshToken: 'b', expiresAt: new Date(NOW) }),
    ],
    [
      'a token without what is blank',
      { github: { token: 'a', refresh_token: ' ' } },
      {},
      set('github', 'a', null),
    ],
    [
      'Data Center tokens in any form',
      { bitbucket: { token: 'ATATTx', host: 'git.corp.example' } },
      {},
      set('bitbucket', 'ATATTx', 'git.corp.example'),
    ],
  ])('plans %s', (_title, inputs, stored, ...changes) => {
    expect(plan(inputs, stored)).toEqual({ changes, problems: [] });
  });

  it.each<[string, Inputs, Stored, ...string[]]>([
    ['another host beside a blank token', { github: { token: '', host: OWN } }, { github: null }, 'host'],
    ['the public host in place of another', { github: { host: 'github.com' } }, { github: OWN }, 'host'],
    ['a host beside a blank token with nothing stored', { github: { host: OWN } }, {}, 'host'],
    ['a refused host beside a blank token', { github: { host: 'evil.example' } }, { github: null }, 'host'],
    ['a refused host beside a new token', { github: { token: 'ghp_a', host: '10.0.0.1' } }, {}, 'host'],
    ['an impossible token', { github: { token: 'ghs_a' } }, {}, 'token'],
    ['white space in a token', { github: { token: 'ghp_a\n' } }, {}, 'token'],
    ['both, in field order', { gitlab: { token: 'glcbt-a', host: `http://${OWN}` } }, {}, 'token', 'host'],
    ['a Bitbucket Cloud token without e-mail', { bitbucket: { token: 'ATATTx' } }, {}, 'token'],
    ['only the host of a Data Center token', { bitbucket: { token: 'ATATTx', host: 'a..b' } }, {}, 'host'],
    ['a refresh token alone', { gitlab: { refresh_token: 'b' } }, { gitlab: null }, 'refresh_token'],
    ['one that no client renews', { github: { token: 'a', refresh_token: 'b' } }, {}, 'refresh_token'],
    ['one of another host', { gitlab: { token: 'a', refresh_token: 'b', host: OWN } }, {}, 'refresh_token'],
    ['a host of enterprise_sso', { enterprise_sso: { token: 'abc', host: OWN } }, {}, 'host'],
    ['a host of enterprise_sso without token', { enterprise_sso: { host: 'x' } }, {}, 'host'],
  ])('refuses %s', (_title, inputs, stored, ...members) => {
    const [provider] = Object.keys(inputs);
    expect(problemPlaces(plan(inputs, stored))).toEqual(
      members.map((member) => `body.provider_tokens.${provider}.${member} value_error`),
    );
  });

  it('reports the problems of all providers in the order of the input', () => {
    expect(
      problemPlaces(
        plan({ gitlab: { token: 'gldt-a' }, bitbucket: null, github: { token: 'ghs_a', host: 'nope' } }),
      ),
    ).toEqual([
      'body.provider_tokens.gitlab.token value_error',
      'body.provider_tokens.github.token value_error',
      'body.provider_tokens.github.host value_error',
    ]);
  });

  it('refuses new tokens of enterprise_sso that is not configured, and still removes old ones', () => {
    expect(problemPlaces(plan({ enterprise_sso: { token: 'abc' } }, {}, false))).toEqual([
      'body.provider_tokens.enterprise_sso.token value_error',
    ]);
    expect(plan({ enterprise_sso: { token: '' } }, {}, false)).toEqual({ changes: [], problems: [] });
    expect(plan({ enterprise_sso: null }, {}, false).changes).toEqual([
      { kind: 'remove', provider: 'enterprise_sso' },
    ]);
  });

  it.each(['evil.example', '127.0.0.1', 'git.example.com/../admin', 'gitlab.com'])(
    'refuses %j with one and the same text',
    (host) => {
      expect(plan({ github: { token: 'ghp_a', host } }).problems).toEqual([
        { loc: ['body', 'provider_tokens', 'github', 'host'], msg: HOST_REFUSED, type: 'value_error' },
      ]);
    },
  );
});

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
