import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { HostActor } from '@slipway/git-providers/git-provider.js';
import { RepositoryAccessService } from '../../src/git-providers/repository-access.service.js';
import { startFakeBitbucketDataCenter } from '../fakes/fake-bitbucket-data-center.js';
import type { FakeServer } from '../fakes/fake-server.js';
import type { FakeMember, FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { type GitHosts, startGitHosts } from '../support/git-hosts.js';
import { TokensClient } from '../support/tokens-client.js';

const MEMBERS: FakeMember[] = [
  { id: '71', login: 'writer', permission: 'write' },
  { id: '72', login: 'reader', permission: 'read' },
];
const REPOSITORY = 'octo/app';
const dataCenterWorld: FakeWorld = { ...sampleWorld(), token: 'datacenter-4217token' };

type Kind = 'github' | 'gitlab' | 'bitbucket' | 'bitbucket_data_center';

/** As the events of each kind name an account. */
const ACTORS: Record<Kind, (id: string, login: string) => HostActor> = {
  github: (id, login) => ({ name: login, id, isOwner: false }),
  gitlab: (id) => ({ name: id, id, isOwner: false }),
  bitbucket: (id) => ({ name: `{${id}}`, id: `{${id}}`, isOwner: false }),
  bitbucket_data_center: (id, login) => ({ name: login, id, isOwner: false }),
};
const KINDS = Object.keys(ACTORS) as Kind[];

let hosts: GitHosts;
let dataCenter: FakeServer;
let app: TestApp;
let client: TokensClient;

beforeAll(async () => {
  hosts = await startGitHosts();
  dataCenter = await startFakeBitbucketDataCenter(dataCenterWorld);
  for (const world of [...Object.values(hosts.worlds), dataCenterWorld]) {
    world.members = MEMBERS;
    world.repositories.push({ name: 'octo/public', activeAt: '2026-11-20T16:45:12Z', isPublic: true });
  }
  app = await createTestApp({ ...hosts.environment, GIT_HOST_ALLOWLIST: dataCenter.origin });
});

beforeEach(async () => {
  hosts.clearFaults();
  dataCenter.clearFaults();
  client = new TokensClient(app, await app.createUser());
});

afterAll(async () => {
  await app.close();
  await dataCenter.close();
  await hosts.close();
});

async function storeToken(kind: Kind): Promise<void> {
  const tokens =
    kind === 'bitbucket_data_center'
      ? { bitbucket: { token: dataCenterWorld.token, host: dataCenter.origin } }
      : { [kind]: { token: hosts.worlds[kind].token } };
  await client.postTokens(tokens);
}

function rightsOf(kind: Kind, id: string, login: string, repository = REPOSITORY) {
  const actor = ACTORS[kind](id, login);
  return app.app.get(RepositoryAccessService).rightsOf(client.user.id, { source: kind }, repository, actor);
}

it.each(KINDS)('accounts of %s may what the host says', async (kind) => {
  await storeToken(kind);
  for (const [id, login, repository, mayWrite, isSelf] of [
    ['71', 'writer', REPOSITORY, true, false],
    ['72', 'reader', REPOSITORY, false, false],
    ['79', 'stranger', REPOSITORY, false, false],
    ['79', 'stranger', 'octo/public', false, false],
    ['4217', 'mona', REPOSITORY, true, true],
  ] as const) {
    const rights = await rightsOf(kind, id, login, repository);
    expect([login, repository, rights]).toEqual([login, repository, { mayWrite, isSelf }]);
  }
});

it('an account is asked for once in five minutes, whatever the case of the repository', async () => {
  await storeToken('github');
  await rightsOf('github', '71', 'writer');
  const asked = hosts.github.requests.length;
  await rightsOf('github', '71', 'writer', 'Octo/App');
  expect(hosts.github.requests).toHaveLength(asked);
  await rightsOf('github', '72', 'reader');
  expect(hosts.github.requests.length).toBeGreaterThan(asked);
});

it.each(KINDS)('an account of %s is asked for again after the host has failed', async (kind) => {
  await storeToken(kind);
  const server = kind === 'bitbucket_data_center' ? dataCenter : hosts[kind];
  server.injectFault({ kind: 'status', status: 503 });
  await expect(rightsOf(kind, '71', 'writer')).rejects.toMatchObject({ kind: 'bad_gateway' });
  server.clearFaults();
  expect(await rightsOf(kind, '71', 'writer')).toMatchObject({ mayWrite: true });
});

it('an account that has taken the name of another one may nothing', async () => {
  await storeToken('github');
  expect(await rightsOf('github', '99', 'writer')).toEqual({ mayWrite: false, isSelf: false });
  expect(await rightsOf('github', '99', 'mona')).toEqual({ mayWrite: false, isSelf: false });
});

it('an app of GitHub is no account', async () => {
  await storeToken('github');
  expect(await rightsOf('github', '80', 'helper[bot]')).toEqual({ mayWrite: false, isSelf: false });
});

it('without the right to ask, there is no answer', async () => {
  hosts.worlds.bitbucket.isNoAdministrator = true;
  await storeToken('bitbucket');
  await expect(rightsOf('bitbucket', '71', 'writer')).rejects.toMatchObject({ kind: 'bad_gateway' });
  expect(await rightsOf('bitbucket', '4217', 'mona')).toEqual({ mayWrite: true, isSelf: true });
});

it('without a token of the kind, there is no answer', async () => {
  await storeToken('gitlab');
  await expect(rightsOf('github', '71', 'writer')).rejects.toMatchObject({ code: 'no_git_provider' });
});
