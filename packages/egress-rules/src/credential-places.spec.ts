import { expect, it } from '@jest/globals';
import { modelPlaces, repositoryPlaces, stockModelPlaces } from './credential-places.js';
import { searchCredential, toolCredentials } from './tool-credentials.js';

const SERVERS = {
  github: { cloneUrl: 'https://github.com', apiUrl: 'https://api.github.com' },
  gitlab: { cloneUrl: 'https://gitlab.com', apiUrl: 'https://gitlab.com/api' },
  bitbucket: { cloneUrl: 'https://bitbucket.org', apiUrl: 'https://api.bitbucket.org/2.0' },
};

it.each([
  ['github', 'https://github.com/octo/app.git', 'api.github.com/graphql'],
  ['github', 'https://github.corp.example/octo/app.git', 'github.corp.example/api/graphql'],
  ['gitlab', 'https://gitlab.com/octo/app.git', 'gitlab.com/api/graphql'],
  ['gitlab', 'https://git.corp.example/octo/app.git', 'git.corp.example/api/graphql'],
  ['bitbucket', 'https://bitbucket.org/octo/app.git', null],
] as const)('a token of %s for %s goes to %s where the operator says so', (provider, cloneUrl, graphql) => {
  const found = (hasGraphql: boolean): string[] =>
    repositoryPlaces(provider, cloneUrl, SERVERS, hasGraphql)
      .flatMap(({ host, paths = [] }) => paths.map((path) => `${host}${path}`))
      .filter((place) => place.endsWith('graphql'));
  expect([found(false), found(true)]).toEqual([[], graphql === null ? [] : [graphql]]);
});

it('no key goes to a host of a rule, which stands for all names below', () => {
  const url = 'https://*.example.com/v1';
  expect(modelPlaces('openai/m', url)).toEqual([]);
  expect(stockModelPlaces('openai/m', url)).toEqual([]);
  expect(toolCredentials({ s: { url, headers: { authorization: 'Bearer of-the-tool-server' } } })).toEqual(
    [],
  );
  expect(searchCredential(url, 'tvly-of-the-search')).toEqual([]);
});
