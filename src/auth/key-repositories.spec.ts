import { describe, expect, it } from '@jest/globals';
import { covers, isWithin, KEY_REPOSITORY, providerWithin } from './key-repositories.js';

const github = (selectedRepository: string | null): Parameters<typeof isWithin>[1] => ({
  gitProvider: 'github',
  selectedRepository,
});

describe('a key for some repositories', () => {
  it.each([
    ['github:octo/app', 'octo/app', true],
    ['github:octo/app', 'Octo/App', true],
    ['github:octo/app', 'octo/app2', false],
    ['github:octo/app', 'octo/ap', false],
    ['github:octo/app', 'octo/app.git', false],
    ['github:octo/app', 'octo/app/sub', false],
    ['github:octo/app', 'acme/app', false],
    ['github:octo/app', null, false],
    ['github:octo/*', 'octo/app', true],
    ['github:octo/*', 'OCTO/app', true],
    ['github:octo/*', 'octo', false],
    ['github:octo/*', 'octopus/app', false],
    ['github:octo/*', 'acme/octo', false],
    ['github:octo/*', null, false],
    ['gitlab:octo/app', 'octo/app', false],
    ['gitlab:octo/*', 'octo/app', false],
  ])('%s has %s: %s', (entry, repository, isOne) => {
    expect(isWithin([entry], github(repository))).toBe(isOne);
  });

  it.each([
    ['gitlab:group/*', 'group/project', true],
    ['gitlab:group/*', 'group/sub/project', true],
    ['gitlab:group/*', 'group/sub/deeper/project', true],
    ['gitlab:group/sub/*', 'group/sub/project', true],
    ['gitlab:group/sub/*', 'group/project', false],
    ['gitlab:group/sub/*', 'group/subs/project', false],
    ['gitlab:group/sub/*', 'sub/project', false],
  ])('%s has %s of GitLab, whose groups nest: %s', (entry, selectedRepository, isOne) => {
    expect(isWithin([entry], { gitProvider: 'gitlab', selectedRepository })).toBe(isOne);
  });

  it('has nothing whose provider is not known', () => {
    expect(isWithin(['github:octo/app'], { gitProvider: null, selectedRepository: 'octo/app' })).toBe(false);
  });

  it('is not what a key for all is', () => {
    expect(isWithin(null, { gitProvider: null, selectedRepository: null })).toBe(true);
  });

  it.each([
    ['github:octo/app', true],
    ['gitlab:group/*', true],
    ['gitlab:group/sub/*', true],
    ['bitbucket:team/slug', true],
    ['enterprise_sso:~jane/slug', true],
    ['github:*', false],
    ['github:*/app', false],
    ['github:octo', false],
    ['github:octo/a*', false],
    ['github:octo/**', false],
    ['github:octo/*/app', false],
    ['github:octo/..', false],
    ['github:../octo/*', false],
    ['github:octo//app', false],
    ['GitHub:octo/app', false],
    ['gitea:octo/app', false],
    ['octo/app', false],
    ['github:octo/app\n', false],
    [' github:octo/app', false],
    ['https://github.com/octo/app', false],
  ])('may be for %j: %s', (entry, isEntry) => {
    expect(KEY_REPOSITORY.test(entry)).toBe(isEntry);
  });

  it.each([
    ['github:octo/app', true],
    ['github:Octo/App', true],
    ['github:octo/*', false],
    ['github:octo/other', false],
    ['gitlab:group/*', true],
    ['gitlab:group/sub/*', true],
    ['gitlab:group/sub/project', true],
    ['gitlab:groups/*', false],
    ['github:group/project', false],
  ])('makes another key for %s: %s', (entry, isCovered) => {
    expect(covers(['github:octo/app', 'gitlab:group/*'], entry)).toBe(isCovered);
  });

  it.each([
    [['github:octo/app'], 'github'],
    [['github:octo/*', 'gitlab:acme/*'], 'github'],
    [['github:octo/*', 'gitlab:octo/app'], null],
    [['gitlab:acme/*'], null],
  ])('of %j leaves %s as the provider of octo/app', (entries, provider) => {
    expect(providerWithin(entries, 'octo/app')).toBe(provider);
  });
});
