import { startFakeBitbucket } from '../fakes/fake-bitbucket.js';
import { startFakeGithub } from '../fakes/fake-github.js';
import { startFakeGitlab } from '../fakes/fake-gitlab.js';
import type { FakeServer } from '../fakes/fake-server.js';
import type { FakeWorld } from '../fakes/fake-world.js';
import { sampleWorld } from '../fakes/sample-world.js';

/** The three public git hosts, as stand-ins on loopback. */
export interface GitHosts {
  github: FakeServer;
  gitlab: FakeServer;
  bitbucket: FakeServer;
  worlds: { github: FakeWorld; gitlab: FakeWorld; bitbucket: FakeWorld };
  /** Environment that points the service at them. */
  environment: Record<string, string>;
  /** Body of `POST /api/add-git-providers` with all three tokens. */
  tokens: { provider_tokens: Record<'github' | 'gitlab' | 'bitbucket', { token: string }> };
  clearFaults(): void;
  close(): Promise<void>;
}

/** Starts all three; every host has the sample world and a token of its own. */
export async function startGitHosts(options: { latencyMs?: number } = {}): Promise<GitHosts> {
  const worlds = {
    github: { ...sampleWorld(), token: 'ghp_octocat4217token' },
    gitlab: { ...sampleWorld(), token: 'glpat-tanuki4217token' },
    bitbucket: { ...sampleWorld(), token: 'mona@example.com:bucket4217token', issues: [] },
  };
  const github = await startFakeGithub(worlds.github, options);
  const gitlab = await startFakeGitlab(worlds.gitlab, options);
  const bitbucket = await startFakeBitbucket(worlds.bitbucket, options);
  const servers = [github, gitlab, bitbucket];
  return {
    github,
    gitlab,
    bitbucket,
    worlds,
    environment: {
      GITHUB_API_URL: github.origin,
      GITLAB_API_URL: `${gitlab.origin}/api`,
      BITBUCKET_API_URL: `${bitbucket.origin}/2.0`,
    },
    tokens: {
      provider_tokens: {
        github: { token: worlds.github.token },
        gitlab: { token: worlds.gitlab.token },
        bitbucket: { token: worlds.bitbucket.token },
      },
    },
    clearFaults: () => {
      for (const server of servers) {
        server.clearFaults();
        server.requests.length = 0;
      }
    },
    close: async () => {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}
