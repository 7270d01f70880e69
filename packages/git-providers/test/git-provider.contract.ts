import { describe, expect, it } from '@jest/globals';
import { describeChangeRequests } from './git-provider.change-requests.contract.js';
import { describeFaults } from './git-provider.faults.contract.js';
import { describeFollow } from './git-provider.follow.contract.js';
import { describeForks } from './git-provider.forks.contract.js';
import {
  failureOf,
  type GitProviderCapabilities,
  type GitProviderSetUp,
  harnessOpener,
} from './git-provider.harness.js';
import { describeLists } from './git-provider.lists.contract.js';
import { describeWork } from './git-provider.work.contract.js';

/**
 * What every adapter of the git-provider port does alike, told by running it against a fake of its host over
 * real HTTP. Nothing in it is in a vendor's words; what a host cannot know is said by `capabilities`.
 */
export function describeGitProvider(
  name: string,
  setUp: GitProviderSetUp,
  capabilities: GitProviderCapabilities,
): void {
  describe(`${name} as a git provider`, () => {
    describe('finds work', () => {
      describeWork(setUp, capabilities);
    });

    describe('when something goes wrong', () => {
      describeFaults(setUp, capabilities);
    });

    describe('opens change requests', () => {
      describeChangeRequests(setUp, capabilities);
    });

    describe('follows change requests', () => {
      describeFollow(setUp, capabilities);
    });

    describe('works with forks', () => {
      describeForks(setUp, capabilities);
    });

    describe('lists', () => {
      describeLists(setUp, capabilities);
    });

    describeAccess(setUp, capabilities);
  });
}

/** What the token stands for: an account, and the way of git. */
export function describeAccess(
  setUp: GitProviderSetUp,
  capabilities: Pick<GitProviderCapabilities, 'clone' | 'rejection' | 'user'>,
): void {
  describe('lets git in', () => {
    const open = harnessOpener(setUp);

    it('names the address of a repository, without credentials', async () => {
      const { provider, auth, server } = await open();
      expect(provider.cloneUrl(auth.host, 'octo/app')).toBe(capabilities.clone.url(server.origin));
      for (const name of ['octo/../app', 'octo', 'octo/app?x']) {
        expect(() => provider.cloneUrl(auth.host, name)).toThrow(
          expect.objectContaining({ code: 'unsupported', reason: expect.stringContaining('is not named') }),
        );
      }
    });

    it('tells user name and password', async () => {
      const { provider, call, server } = await open();
      const { credential, bearer, token = call.token } = capabilities.clone;
      const shown = { password: call.token, ...credential, bearer: bearer?.(server.origin) };
      expect(await provider.gitCredential(call)).toEqual(shown);
      expect(await provider.apiToken(call)).toBe(token);
    });
  });

  describe('knows accounts', () => {
    const open = harnessOpener(setUp);

    it('finds a good token valid, with one request', async () => {
      const { provider, call, server } = await open();
      expect(await provider.checkToken(call)).toEqual({ status: 'valid' });
      expect(server.requests).toHaveLength(1);
    });

    it('finds another token invalid', async () => {
      const { provider, otherCall } = await open();
      expect(await provider.checkToken(otherCall)).toMatchObject({ status: 'invalid' });
    });

    it('tells the account', async () => {
      const { provider, call, world } = await open();
      expect(await provider.getUser(call)).toEqual({
        ...world.user,
        company: null,
        avatarUrl: expect.stringMatching(/^https?:\/\//),
        ...capabilities.user,
      });
    });

    it('tells nothing to another token, even after it told the account', async () => {
      const { provider, call, otherCall } = await open();
      for (const method of ['findWork', 'getUser'] as const) {
        await provider[method](call);
        const { code } = await failureOf(provider[method](otherCall));
        expect(code).toBe(capabilities.rejection ?? 'unauthorized');
      }
    });
  });
}
