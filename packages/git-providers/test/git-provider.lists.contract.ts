import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import type { BranchQuery, Listing, RepositoryQuery } from '../src/repository-lists.js';
import type { FakeWorld } from '../../../test/fakes/fake-world.js';
import { sampleWorld } from '../../../test/fakes/sample-world.js';
import {
  failureOf,
  type GitProviderCapabilities,
  type GitProviderHarness,
  type GitProviderSetUp,
  harnessOpener,
  type Opened,
} from './git-provider.harness.js';

export const ALL: RepositoryQuery = { text: null, installation: null, sort: null, position: 1, limit: 100 };
export const BRANCHES: BranchQuery = { repository: 'octo/app', text: null, position: 1, limit: 100 };

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

  const withApp = (): FakeWorld => ({ ...sampleWorld(), appInstallations: [{ id: 81, owner: 'octo' }] });
  const find = async (
    { provider, call }: GitProviderHarness & Opened,
    query: Partial<RepositoryQuery>,
  ): Promise<string[]> => {
    const { items } = await provider.searchRepositories({ ...ALL, ...query }, call);
    return items.map(({ name }) => name).toSorted();
  };

  describe('of repositories', () => {
    it.each([100, 1])('have all of the user, in parts of %d', async (limit) => {
      const { provider, call } = await open();
      const names = await readParts(limit, (range) =>
        provider.searchRepositories({ ...ALL, ...range }, call),
      );
      expect(names).toEqual(['mona/notes', 'octo/app', 'octo/library']);
    });

    it('tell what the host tells', async () => {
      const world = sampleWorld();
      Object.assign(world.repositories.at(-1) ?? {}, { isPublic: true, stars: 7 });
      const { provider, call } = await open(world);
      const { items } = await provider.searchRepositories({ ...ALL, text: 'library' }, call);
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

    it('find by part of a name, whatever is in it', async () => {
      const harness = await open();
      for (const [text, expected] of [
        ['lib', ['octo/library']],
        ['LIB', ['octo/library']],
        ['octo/', ['octo/app', 'octo/library']],
        ['octo/ap', ['octo/app']],
        ['no-such-name', []],
        ['"', []],
        ['\\', []],
        ['a" OR name ~ "', []],
        ['x&installation=1', []],
      ] as const) {
        expect([text, await find(harness, { text })]).toEqual([text, expected]);
      }
    });

    it('of a text come in parts too', async () => {
      const { provider, call } = await open();
      const names = await readParts(1, (range) =>
        provider.searchRepositories({ ...ALL, ...range, text: 'a' }, call),
      );
      expect(names).toEqual(expect.arrayContaining(['octo/app', 'octo/library']));
      expect(new Set(names).size).toBe(names.length);
    });

    it('are narrowed down to an installation', async () => {
      const harness = await open(withApp());
      const { provider, call } = harness;
      const { items, next } = await provider.listInstallations({ position: 1, limit: 100 }, call);
      expect([items.toSorted(), next]).toEqual([lists.installations, null]);
      const { octo: installation } = lists;
      if (installation !== null) {
        expect(await find(harness, { installation })).toEqual(['octo/app', 'octo/library']);
        expect(await find(harness, { installation, text: 'ap' })).toEqual(['octo/app']);
      }
    });

    it('say that there is no such installation', async () => {
      const { provider, call } = await open(withApp());
      for (const installation of ['999', 'no-such-one', '..', '../user', 'a b']) {
        expect(await failureOf(provider.searchRepositories({ ...ALL, installation }, call))).toMatchObject({
          code: 'unsupported',
          reason: expect.stringContaining('there is no such'),
        });
      }
    });
  });

  describe('of branches', () => {
    it('have all of a repository, in parts and by part of a name', async () => {
      const { provider, call } = await open();
      for (const [limit, text, expected] of [
        [100, null, ['fix/it', 'main', 'release']],
        [2, null, ['fix/it', 'main', 'release']],
        [1, 'i', ['fix/it', 'main']],
        [100, 'FIX', ['fix/it']],
        [100, 'no-such-branch', []],
        [100, '"', []],
      ] as const) {
        const names = await readParts(limit, (range) =>
          provider.searchBranches({ ...BRANCHES, ...range, text }, call),
        );
        expect([limit, text, names]).toEqual([limit, text, expected]);
      }
    });

    it('tell what the host tells', async () => {
      const { provider, call } = await open();
      const { items } = await provider.searchBranches(BRANCHES, call);
      expect(items.find(({ name }) => name === 'main')).toEqual({
        name: 'main',
        commit: expect.stringMatching(/^[0-9a-f]{40}$/),
        isProtected: lists.protection,
        committedAt: lists.branchTimes ? Date.parse('2026-11-20T16:45:12Z') : null,
      });
    });

    it.each([null, 'fix'])('say that there is no such repository (text %j)', async (text) => {
      const { provider, call } = await open();
      const query = { ...BRANCHES, text, repository: 'octo/none' };
      expect(await failureOf(provider.searchBranches(query, call))).toMatchObject({
        code: 'unsupported',
        reason: 'there is no such repository, or the token cannot see it',
      });
    });

    it('ask nothing about what is no name', async () => {
      const { provider, call, server } = await open();
      for (const repository of ['octo', 'octo/../app', 'octo/app?x=1']) {
        const error = await failureOf(provider.searchBranches({ ...BRANCHES, repository }, call));
        expect(error.reason).toMatch(/is not named/);
      }
      expect(server.requests).toEqual([]);
    });
  });

  describe('in trouble', () => {
    it('take nothing but a list', async () => {
      const { provider, call, server } = await open();
      server.injectFault({ kind: 'status', status: 200, body: { ok: true } });
      for (const failed of [
        failureOf(provider.searchRepositories(ALL, call)),
        failureOf(provider.searchBranches(BRANCHES, call)),
      ]) {
        expect(await failed).toMatchObject({ code: 'unavailable', reason: null });
      }
    });

    it('tell nothing to another token', async () => {
      const { provider, call, otherCall } = await open();
      await provider.searchRepositories(ALL, call);
      for (const failed of [
        failureOf(provider.searchRepositories(ALL, otherCall)),
        failureOf(provider.searchBranches(BRANCHES, otherCall)),
      ]) {
        expect((await failed).code).toBe(capabilities.rejection ?? 'unauthorized');
      }
    });

    it('never repeat the token', async () => {
      const { provider, call, server, world } = await open();
      server.injectFault({ kind: 'status', status: 403, body: { message: `no, ${world.token}` } });
      const error = await failureOf(provider.searchRepositories(ALL, call));
      expect(inspect(error, { depth: null, showHidden: true })).not.toContain(world.token);
    });
  });
}
