import { describe, expect, it } from '@jest/globals';
import { sampleWorld } from '../fakes/sample-world.js';
import { describeChangeRequests } from './git-provider.change-requests.contract.js';
import { describeFaults } from './git-provider.faults.contract.js';
import { describeFollow } from './git-provider.follow.contract.js';
import {
  failureOf,
  type GitProviderCapabilities,
  type GitProviderSetUp,
  harnessOpener,
  relaxedCall,
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

    describe('lists', () => {
      describeLists(setUp, capabilities);
    });

    describe('lets git in', () => {
      const open = harnessOpener(setUp);

      it('names the address of a repository, without credentials', async () => {
        const { provider, auth, server } = await open(sampleWorld());
        expect(provider.cloneUrl(auth.host, 'octo/app')).toBe(capabilities.clone.url(server.origin));
      });

      it.each(['octo/../app', 'octo/-app', 'octo', 'octo/app?x', 'octo/app\n'])(
        'names none for %j',
        async (name) => {
          const { provider, auth } = await open(sampleWorld());
          expect(() => provider.cloneUrl(auth.host, name)).toThrow(
            expect.objectContaining({ code: 'unsupported', reason: expect.stringContaining('is not named') }),
          );
        },
      );

      it('tells user name and password', async () => {
        const { provider, auth } = await open(sampleWorld());
        expect(await provider.gitCredential({ ...auth, ...relaxedCall() })).toEqual({
          password: auth.token,
          ...capabilities.clone.credential,
        });
        const { token = auth.token } = capabilities.clone;
        expect(await provider.apiToken({ ...auth, ...relaxedCall() })).toBe(token);
      });
    });

    describe('knows accounts', () => {
      const open = harnessOpener(setUp);

      it('finds a good token valid, with one request', async () => {
        const { provider, auth, server } = await open(sampleWorld());
        expect(await provider.checkToken({ ...auth, ...relaxedCall() })).toEqual({ status: 'valid' });
        expect(server.requests).toHaveLength(1);
      });

      it('finds another token invalid', async () => {
        const { provider, auth } = await open(sampleWorld());
        const other = { ...auth, token: `${auth.token}x` };
        expect(await provider.checkToken({ ...other, ...relaxedCall() })).toMatchObject({
          status: 'invalid',
        });
      });

      it('tells the account', async () => {
        const world = sampleWorld();
        const { provider, auth } = await open(world);
        expect(await provider.getUser({ ...auth, ...relaxedCall() })).toEqual({
          ...world.user,
          company: null,
          avatarUrl: expect.stringMatching(/^https?:\/\//),
          ...capabilities.user,
        });
      });

      it('tells nothing to another token, even after it told the account', async () => {
        const { provider, auth } = await open(sampleWorld());
        const other = { ...auth, token: `${auth.token}x` };
        await provider.findWork({ ...auth, ...relaxedCall() });
        await provider.getUser({ ...auth, ...relaxedCall() });
        const rejection = capabilities.rejection ?? 'unauthorized';
        expect((await failureOf(provider.findWork({ ...other, ...relaxedCall() }))).code).toBe(rejection);
        expect((await failureOf(provider.getUser({ ...other, ...relaxedCall() }))).code).toBe(rejection);
      });
    });
  });
}
