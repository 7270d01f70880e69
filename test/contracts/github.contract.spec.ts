import { GuardedHttpClient } from '../../src/common/http/guarded-http.client.js';
import { HostAllowlist } from '../../src/common/http/host-allowlist.js';
import { GithubProvider } from '../../src/git-providers/github/github.provider.js';
import { startFakeGithub } from '../fakes/fake-github.js';
import { describeGitProvider } from './git-provider.contract.js';

describeGitProvider(
  'GitHub',
  async (world, options) => {
    const server = await startFakeGithub(world, options);
    const http = new GuardedHttpClient({
      allowlist: HostAllowlist.parse([server.origin]),
      maxResponseBytes: 5 * 1024 * 1024,
      timeoutMs: 8_000,
    });
    const provider = new GithubProvider(http, {
      apiUrl: server.origin,
      timing: { now: () => Date.now(), random: () => 0.5, delay: async () => {} },
    });
    return {
      provider,
      auth: { token: world.token, host: null },
      server,
      close: async () => {
        await server.close();
        await http.close();
      },
    };
  },
  {
    issues: true,
    repositoryTimes: true,
    archives: true,
    forks: true,
    mirrors: true,
    maxChangeRequests: 50,
    authorization: (token) => `Bearer ${token}`,
  },
);
