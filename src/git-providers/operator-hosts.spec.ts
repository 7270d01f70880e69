import { describe, expect, it } from '@jest/globals';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { parseConfig } from '../config/load-config.js';
import { operatorHosts, type OperatorHosts } from './operator-hosts.js';

const SSO = {
  ENTERPRISE_SSO_ISSUER: 'https://sso.example.com/realms/main',
  ENTERPRISE_SSO_ALIAS: 'git',
  ENTERPRISE_SSO_KIND: 'gitlab',
};

function read(variables: Record<string, string>): OperatorHosts {
  return operatorHosts(parseConfig(variables, false).git);
}

describe('operatorHosts', () => {
  it.each([
    ['https://git.example.com', { GIT_HOST_ALLOWLIST: ' git.example.com , *.corp.example' }, true],
    ['https://a.corp.example', { GIT_HOST_ALLOWLIST: 'git.example.com,*.corp.example' }, true],
    ['https://git.example.com', {}, false],
    ['https://api.github.com', {}, true],
    ['http://127.0.0.1:9101', { GITHUB_API_URL: 'http://127.0.0.1:9101/api' }, true],
    ['http://127.0.0.1:9102', { GITLAB_API_URL: 'http://127.0.0.1:9102/api' }, true],
    ['http://127.0.0.1:9103', { BITBUCKET_API_URL: 'http://127.0.0.1:9103/2.0' }, true],
    ['http://127.0.0.1:9104', { GITHUB_API_URL: 'http://127.0.0.1:9101/api' }, false],
    ['https://sso.example.com', SSO, true],
    ['https://git.internal', { ...SSO, ENTERPRISE_SSO_HOST: 'git.internal' }, true],
    ['http://127.0.0.1:9105', { ...SSO, ENTERPRISE_SSO_HOST: 'http://127.0.0.1:9105/root' }, true],
  ])('decides about %s with %j', (address, variables, allowed) => {
    expect(read(variables).allowlist.allows(new URL(address))).toBe(allowed);
  });

  it.each([
    ['the default address', {}, null],
    ['its canonical name', { ENTERPRISE_SSO_HOST: 'gitlab.com' }, null],
    ['a self-managed server', { ENTERPRISE_SSO_HOST: 'https://GIT.internal/root/' }, 'git.internal/root'],
  ])('reads the host behind enterprise_sso: %s', (_title, variables, host) => {
    expect(read({ ...SSO, ...variables }).ssoHost).toBe(host);
  });

  it.each([
    ['GIT_HOST_ALLOWLIST', { GIT_HOST_ALLOWLIST: 'git.example.com,git host' }],
    ['GIT_HOST_ALLOWLIST', { GIT_HOST_ALLOWLIST: 'https://git.example.com/path' }],
    ['ENTERPRISE_SSO_HOST', { ...SSO, ENTERPRISE_SSO_HOST: 'ftp://git.internal' }],
    ['ENTERPRISE_SSO_HOST', { ...SSO, ENTERPRISE_SSO_HOST: 'user@git.internal' }],
    [
      'ENTERPRISE_SSO_HOST',
      { ...SSO, ENTERPRISE_SSO_HOST: 'bitbucket.org', ENTERPRISE_SSO_KIND: 'bitbucket_dc' },
    ],
  ])('stops the start with one line that names %s: %j', (variable, variables) => {
    expect(() => read(variables)).toThrow(ConfigError);
    expect(() => read(variables)).toThrow(new RegExp(`^${variable}: [^\\n]+$`));
  });
});
