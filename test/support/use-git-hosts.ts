import { afterAll, beforeAll } from '@jest/globals';
import type { TestApp } from './create-test-app.js';
import { type GitHosts, startGitHosts } from './git-hosts.js';
import { type Parts, useTestApp } from './use-test-app.js';

type Environment = Record<string, string>;

/**
 * The public git hosts and the application that knows them, as `useTestApp` has the application alone.
 *
 * @param environment beside what points the service at the hosts, which run when a function is called
 */
export function useGitHosts(
  environment: Environment | ((hosts: GitHosts) => Environment | Promise<Environment>) = {},
  parts: Parts = {},
): { hosts: GitHosts; app: TestApp } {
  const hosts = {} as GitHosts;
  beforeAll(async () => {
    Object.assign(hosts, await startGitHosts());
  });
  const app = useTestApp(async () => {
    const more = typeof environment === 'function' ? await environment(hosts) : environment;
    return { ...hosts.environment, ...more };
  }, parts);
  afterAll(() => hosts.close());
  return { hosts, app };
}
