import { startFakeBitbucket } from '../../test/fakes/fake-bitbucket.js';
import { startFakeGithub } from '../../test/fakes/fake-github.js';
import { startFakeGitlab } from '../../test/fakes/fake-gitlab.js';
import type { FakeWorld } from '../../test/fakes/fake-world.js';

export const PROVIDERS = ['github', 'gitlab', 'bitbucket'] as const;
export type BenchProvider = (typeof PROVIDERS)[number];

/** Fakes of the three git hosts, each with six change requests whose state is known. */
export interface FakeGitHosts {
  environment: Record<string, string>;
  /** Gives the user new tokens, for which nothing is cached, and returns the request body that stores them. */
  rotateTokens(): string;
  /** Requests since the last call, by host. */
  takeCounts(): Record<BenchProvider, number>;
  close(): Promise<void>;
}

export async function startFakeGitHosts(latencyMs: number): Promise<FakeGitHosts> {
  const worlds = { github: benchWorld(), gitlab: benchWorld(), bitbucket: benchWorld() };
  const servers = {
    github: await startFakeGithub(worlds.github, { latencyMs }),
    gitlab: await startFakeGitlab(worlds.gitlab, { latencyMs }),
    bitbucket: await startFakeBitbucket(worlds.bitbucket, { latencyMs }),
  };
  let generation = 0;
  return {
    environment: {
      GITHUB_API_URL: servers.github.origin,
      GITLAB_API_URL: `${servers.gitlab.origin}/api`,
      BITBUCKET_API_URL: `${servers.bitbucket.origin}/2.0`,
    },
    rotateTokens: () => {
      generation += 1;
      worlds.github.token = `ghp_bench${generation}`;
      worlds.gitlab.token = `glpat-bench${generation}`;
      worlds.bitbucket.token = `bench@example.com:bench${generation}`;
      return JSON.stringify({
        provider_tokens: Object.fromEntries(PROVIDERS.map((name) => [name, { token: worlds[name].token }])),
      });
    },
    takeCounts: () => ({
      github: servers.github.requests.splice(0).length,
      gitlab: servers.gitlab.requests.splice(0).length,
      bitbucket: servers.bitbucket.requests.splice(0).length,
    }),
    close: async () => {
      await Promise.all(PROVIDERS.map((name) => servers[name].close()));
    },
  };
}

/** Three repositories with six change requests. */
function benchWorld(): FakeWorld {
  const repositories = ['app', 'library', 'tools'].map((name, index) => ({
    name: `bench/${name}`,
    activeAt: `2026-11-0${index + 1}T10:00:00Z`,
  }));
  return {
    token: '',
    user: { id: '7', login: 'bench', name: 'Bench', email: 'bench@example.com' },
    repositories,
    changeRequests: Array.from({ length: 6 }, (_, index) => ({
      repository: `bench/${['app', 'library', 'tools'][index % 3] ?? 'app'}`,
      number: index + 1,
      title: `Change number ${index + 1}`,
      updatedAt: `2026-11-0${index + 1}T09:00:00Z`,
      conflicts: 'no',
      checks: 'passing',
    })),
    issues: [],
  };
}
