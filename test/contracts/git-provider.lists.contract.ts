import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { GitProvider, ProviderAuth } from '../../src/git-providers/git-provider.js';
import type { BranchQuery, Listing, RepositoryQuery } from '../../src/git-providers/repository-lists.js';
import type { FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';
import { FAULTS } from './git-provider.faults.contract.js';
import {
  failureOf,
  type GitProviderCapabilities,
  type GitProviderSetUp,
  harnessOpener,
  relaxedCall,
} from './git-provider.harness.js';

const ALL: RepositoryQuery = { text: null, installation: null, sort: null, position: 1, limit: 100 };
const BRANCHES: BranchQuery = { repository: 'octo/app', text: null, position: 1, limit: 100 };

/** Reads part after part. Gives up after twenty, where a list does not end. */
async function readParts(
  limit: number,
  read: (range: { position: number; limit: number }) => Promise<Listing<{ name: string }>>,
): Promise<string[]> {
  const names: string[] = [];
  let position: number | null = 1;
  for (let count = 0; position !== null && count < 20; count += 1) {
    const part: Listing<{ name: string }> = await read({ position, limit });
    expect(part.items.length).toBeLessThanOrEqual(limit);
    names.push(...part.items.map(({ name }) => name));
    position = part.next;
  }
  expect(position).toBeNull();
  return names.toSorted();
}

/** Lists that people choose from: whole, in parts, by part of a name, and never a stranger's. */
export function describeLists(setUp: GitProviderSetUp, capabilities: GitProviderCapabilities): void {
  const open = harnessOpener(setUp);
  const { lists } = capabilities;
  const rejection = capabilities.rejection ?? 'unauthorized';

  const withApp = (): FakeWorld => ({ ...sampleWorld(), appInstallations: [{ id: 81, owner: 'octo' }] });
  const find = async (
    { provider, auth }: { provider: GitProvider; auth: ProviderAuth },
    query: Partial<RepositoryQuery>,
  ): Promise<string[]> => {
    const { items } = await provider.searchRepositories({ ...ALL, ...query }, { ...auth, ...relaxedCall() });
    return items.map(({ name }) => name).toSorted();
  };

  describe('of repositories', () => {
    it.each([100, 1])('have all of the user, in parts of %d', async (limit) => {
      const { provider, auth } = await open(sampleWorld());
      const names = await readParts(limit, (range) =>
        provider.searchRepositories({ ...ALL, ...range }, { ...auth, ...relaxedCall() }),
      );
      expect(names).toEqual(['mona/notes', 'octo/app', 'octo/library']);
    });

    it('tell what the host tells', async () => {
      const world = sampleWorld();
      world.repositories = world.repositories.map((repository) =>
        repository.name === 'octo/library' ? { ...repository, isPublic: true, stars: 7 } : repository,
      );
      const { provider, auth } = await open(world);
      const { items } = await provider.searchRepositories(
        { ...ALL, text: 'library' },
        { ...auth, ...relaxedCall() },
      );
      expect(items).toEqual([
        {
          id: expect.stringMatching(/^.+$/),
          name: 'octo/library',
          isPublic: true,
          stars: lists.stars ? 7 : null,
          activeAt: capabilities.repositoryTimes ? Date.parse('2026-11-18T09:00:00Z') : null,
          ownerType: 'organization',
          defaultBranch: lists.defaultBranches ? 'trunk' : null,
        },
      ]);
    });

    it.each([
      ['lib', ['octo/library']],
      ['LIB', ['octo/library']],
      ['octo/', ['octo/app', 'octo/library']],
      ['octo/ap', ['octo/app']],
      ['no-such-name', []],
      ['"', []],
      ['\\', []],
      ['a" OR name ~ "', []],
      ['x&installation=1', []],
    ])('find by %j', async (text, expected) => {
      expect(await find(await open(sampleWorld()), { text })).toEqual(expected);
    });

    it('of a text come in parts too', async () => {
      const { provider, auth } = await open(sampleWorld());
      const names = await readParts(1, (range) =>
        provider.searchRepositories({ ...ALL, ...range, text: 'a' }, { ...auth, ...relaxedCall() }),
      );
      expect(names).toEqual(expect.arrayContaining(['octo/app', 'octo/library']));
      expect(new Set(names).size).toBe(names.length);
    });

    it('are narrowed down to an installation', async () => {
      const harness = await open(withApp());
      const { items, next } = await harness.provider.listInstallations(
        { position: 1, limit: 100 },
        { ...harness.auth, ...relaxedCall() },
      );
      expect([items.toSorted(), next]).toEqual([lists.installations, null]);
      const { octo: installation } = lists;
      if (installation !== null) {
        expect(await find(harness, { installation })).toEqual(['octo/app', 'octo/library']);
        expect(await find(harness, { installation, text: 'ap' })).toEqual(['octo/app']);
      }
    });

    it.each(['999', 'no-such-one', '..', '../user', 'a b'])(
      'say that there is no installation %j',
      async (installation) => {
        const { provider, auth } = await open(withApp());
        const error = await failureOf(
          provider.searchRepositories({ ...ALL, installation }, { ...auth, ...relaxedCall() }),
        );
        expect([error.code, error.reason]).toEqual([
          'unsupported',
          expect.stringContaining('there is no such'),
        ]);
      },
    );
  });

  describe('of branches', () => {
    it.each([
      [100, null, ['fix/it', 'main', 'release']],
      [2, null, ['fix/it', 'main', 'release']],
      [1, 'i', ['fix/it', 'main']],
      [100, 'FIX', ['fix/it']],
      [100, 'no-such-branch', []],
      [100, '"', []],
    ])('have all of a repository, in parts of %d (text %j)', async (limit, text, expected) => {
      const { provider, auth } = await open(sampleWorld());
      const names = await readParts(limit, (range) =>
        provider.searchBranches({ ...BRANCHES, ...range, text }, { ...auth, ...relaxedCall() }),
      );
      expect(names).toEqual(expected);
    });

    it('tell what the host tells', async () => {
      const { provider, auth } = await open(sampleWorld());
      const { items } = await provider.searchBranches(BRANCHES, { ...auth, ...relaxedCall() });
      expect(items.find(({ name }) => name === 'main')).toEqual({
        name: 'main',
        commit: expect.stringMatching(/^[0-9a-f]{40}$/),
        isProtected: lists.protection,
        committedAt: lists.branchTimes ? Date.parse('2026-11-20T16:45:12Z') : null,
      });
    });

    it.each([null, 'fix'])('say that there is no such repository (text %j)', async (text) => {
      const { provider, auth } = await open(sampleWorld());
      const query = { ...BRANCHES, text, repository: 'octo/none' };
      const error = await failureOf(provider.searchBranches(query, { ...auth, ...relaxedCall() }));
      expect([error.code, error.reason]).toEqual([
        'unsupported',
        'there is no such repository, or the token cannot see it',
      ]);
    });

    it.each(['octo', 'octo/../app', 'octo/-app', 'octo/app?x=1', 'octo/a b'])(
      'ask nothing about %j',
      async (repository) => {
        const { provider, auth, server } = await open(sampleWorld());
        const query = { ...BRANCHES, repository };
        const error = await failureOf(provider.searchBranches(query, { ...auth, ...relaxedCall() }));
        expect(error.reason).toMatch(/is not named/);
        expect(server.requests).toEqual([]);
      },
    );
  });

  describe('in trouble', () => {
    const cases = FAULTS.map((fault) => ({
      ...fault,
      code: fault.code === 'unauthorized' ? rejection : fault.code,
    }));

    it.each(cases)('say so for $name', async ({ fault, code, retryAfterSeconds = null }) => {
      const { provider, auth, server } = await open(sampleWorld());
      server.injectFault(fault);
      for (const failed of [
        failureOf(provider.searchRepositories(ALL, { ...auth, ...relaxedCall() })),
        failureOf(provider.searchBranches(BRANCHES, { ...auth, ...relaxedCall() })),
      ]) {
        expect(await failed).toMatchObject({ code, retryAfterSeconds, reason: null });
      }
    });

    it('take nothing but a list', async () => {
      const { provider, auth, server } = await open(sampleWorld());
      server.injectFault({ kind: 'status', status: 200, body: { ok: true } });
      for (const failed of [
        failureOf(provider.searchRepositories(ALL, { ...auth, ...relaxedCall() })),
        failureOf(provider.searchBranches(BRANCHES, { ...auth, ...relaxedCall() })),
      ]) {
        expect(await failed).toMatchObject({ code: 'unavailable', reason: null });
      }
    });

    it('tell nothing to another token', async () => {
      const { provider, auth } = await open(sampleWorld());
      await provider.searchRepositories(ALL, { ...auth, ...relaxedCall() });
      const other = { ...auth, token: `${auth.token}x` };
      expect((await failureOf(provider.searchRepositories(ALL, { ...other, ...relaxedCall() }))).code).toBe(
        rejection,
      );
      expect((await failureOf(provider.searchBranches(BRANCHES, { ...other, ...relaxedCall() }))).code).toBe(
        rejection,
      );
    });

    it('never repeat the token', async () => {
      const world = sampleWorld();
      const { provider, auth, server } = await open(world);
      server.injectFault({ kind: 'status', status: 403, body: { message: `no, ${world.token}` } });
      const error = await failureOf(provider.searchRepositories(ALL, { ...auth, ...relaxedCall() }));
      expect(inspect(error, { depth: null, showHidden: true })).not.toContain(world.token);
    });
  });

  it('are asked for with the token in the authorization header only', async () => {
    const { provider, auth, server } = await open(sampleWorld());
    await provider.searchRepositories({ ...ALL, text: 'app' }, { ...auth, ...relaxedCall() });
    await provider.searchBranches({ ...BRANCHES, text: 'fix' }, { ...auth, ...relaxedCall() });
    await provider.listInstallations({ position: 1, limit: 10 }, { ...auth, ...relaxedCall() });
    expect(
      server.requests.filter(
        ({ headers }) => headers['authorization'] !== capabilities.authorization(auth.token),
      ),
    ).toEqual([]);
    const elsewhere = server.requests.map(({ headers, path, query, body }) =>
      JSON.stringify([{ ...headers, authorization: '' }, path, query.toString(), body]),
    );
    expect(elsewhere.filter((text) => text.includes(sampleWorld().token))).toEqual([]);
  });
}
