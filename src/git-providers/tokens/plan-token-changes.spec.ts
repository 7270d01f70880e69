import { describe, expect, it } from '@jest/globals';
import { HostAllowlist } from '../../common/http/host-allowlist.js';
import { PROVIDER_TYPES, type ProviderType } from '../git-provider.types.js';
import { HOST_REFUSED, planTokenChanges, type TokenPlan } from './plan-token-changes.js';
import type { ProviderTokenInput } from './provider-token-input.js';

type Inputs = Partial<Record<ProviderType, ProviderTokenInput | null>>;

function toMap<T>(record: Partial<Record<ProviderType, T>>): Map<ProviderType, T> {
  const map = new Map<ProviderType, T>();
  for (const [key, value] of Object.entries<T | undefined>(record)) {
    const provider = PROVIDER_TYPES.find((known) => known === key);
    if (provider && value !== undefined) {
      map.set(provider, value);
    }
  }
  return map;
}

function plan(
  inputs: Inputs,
  stored: Partial<Record<ProviderType, string | null>> = {},
  sso = true,
): TokenPlan {
  return planTokenChanges(toMap(inputs), {
    allowlist: HostAllowlist.parse(['git.example.com', '*.corp.example']),
    storedHosts: toMap(stored),
    ssoConfigured: sso,
    loc: ['body', 'provider_tokens'],
  });
}

function problemPlaces({ problems }: TokenPlan): string[] {
  return problems.map(({ loc, type }) => `${loc.join('.')} ${type}`);
}

describe('planTokenChanges', () => {
  it.each<[string, Inputs, Partial<Record<ProviderType, string | null>>, TokenPlan['changes']]>([
    ['nothing for an empty map', {}, { github: null }, []],
    ['a removal for null', { github: null }, { github: null }, [{ kind: 'remove', provider: 'github' }]],
    ['nothing for an empty entry', { github: {} }, { github: 'git.example.com' }, []],
    [
      'nothing for blanks',
      { github: { token: ' ', host: '\t', user_id: '' } },
      { github: 'git.example.com' },
      [],
    ],
    ['nothing for blanks with nothing stored', { github: { token: '', host: '' } }, {}, []],
    [
      'nothing for the public host with nothing stored',
      { github: { token: '', host: 'github.com' } },
      {},
      [],
    ],
    [
      'nothing for a blank token beside the stored host',
      { gitlab: { token: null, host: 'HTTPS://Git.Example.Com/' } },
      { gitlab: 'git.example.com' },
      [],
    ],
    [
      'a new account id beside a blank token',
      { github: { token: '', user_id: '7' } },
      { github: null },
      [{ kind: 'account', provider: 'github', accountId: '7' }],
    ],
    [
      'a new token at the default host when the host is blank, whatever host was stored',
      { github: { token: 'ghp_a', host: '' } },
      { github: 'git.example.com' },
      [{ kind: 'set', provider: 'github', token: 'ghp_a', host: null, accountId: null }],
    ],
    [
      'a new token at the canonical form of its host',
      { gitlab: { token: 'glpat-a', host: 'https://GIT.example.com:443/root/', user_id: '7' } },
      {},
      [{ kind: 'set', provider: 'gitlab', token: 'glpat-a', host: 'git.example.com/root', accountId: '7' }],
    ],
    [
      'Data Center tokens in any form',
      { bitbucket: { token: 'ATATTx', host: 'git.corp.example' } },
      {},
      [{ kind: 'set', provider: 'bitbucket', token: 'ATATTx', host: 'git.corp.example', accountId: null }],
    ],
  ])('plans %s', (_title, inputs, stored, changes) => {
    expect(plan(inputs, stored)).toEqual({ changes, problems: [] });
  });

  it.each<[string, Inputs, Partial<Record<ProviderType, string | null>>, string[]]>([
    [
      'another host beside a blank token',
      { github: { token: '', host: 'git.example.com' } },
      { github: null },
      ['host'],
    ],
    [
      'the public host beside a blank token whose host is another',
      { github: { host: 'github.com' } },
      { github: 'git.example.com' },
      ['host'],
    ],
    [
      'a host beside a blank token with nothing stored',
      { github: { host: 'git.example.com' } },
      {},
      ['host'],
    ],
    ['a refused host beside a blank token', { github: { host: 'evil.example' } }, { github: null }, ['host']],
    ['a refused host beside a new token', { github: { token: 'ghp_a', host: '10.0.0.1' } }, {}, ['host']],
    ['an impossible token', { github: { token: 'ghs_a' } }, {}, ['token']],
    ['white space in a token', { github: { token: 'ghp_a\n' } }, {}, ['token']],
    [
      'both, in field order',
      { gitlab: { token: 'glcbt-a', host: 'http://git.example.com' } },
      {},
      ['token', 'host'],
    ],
    ['a Bitbucket Cloud token without e-mail', { bitbucket: { token: 'ATATTx' } }, {}, ['token']],
    ['only the host of a Data Center token', { bitbucket: { token: 'ATATTx', host: 'a..b' } }, {}, ['host']],
    ['a host of enterprise_sso', { enterprise_sso: { token: 'abc', host: 'git.example.com' } }, {}, ['host']],
    ['a host of enterprise_sso without token', { enterprise_sso: { host: 'x' } }, {}, ['host']],
  ])('refuses %s', (_title, inputs, stored, members) => {
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

  it.each([
    'evil.example',
    'does-not-exist.invalid',
    'localhost',
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '[::1]',
    '169.254.169.254',
    'user:pass@git.example.com',
    'git.example.com?x',
    'git.example.com#x',
    'http://git.example.com',
    'ftp://git.example.com',
    'git.example.com:8443',
    'git.example.com\\@evil.example',
    'git.example.com/../admin',
    'corp.example',
    'gitlab.com',
  ])('refuses %j with one and the same text', (host) => {
    expect(plan({ github: { token: 'ghp_a', host } }).problems).toEqual([
      { loc: ['body', 'provider_tokens', 'github', 'host'], msg: HOST_REFUSED, type: 'value_error' },
    ]);
  });
});
