import { afterAll, beforeAll } from '@jest/globals';
import type { TestApp } from './create-test-app.js';
import { type GitHosts, startGitHosts } from './git-hosts.js';
import { type Parts, useTestApp } from './use-test-app.js';

/**
 * The public git hosts and the application that knows them, as `useTestApp` has the application alone.
 *
 * @param environment beside what points the service at the hosts
 */
export function useGitHosts(
  environment: Record<string, string> = {},
  parts: Parts = {},
): { hosts: GitHosts; app: TestApp } {
  const hosts = {} as GitHosts;
  beforeAll(async () => {
    Object.assign(hosts, await startGitHosts());
  });
  const app = useTestApp(() => ({ ...hosts.environment, ...environment }), parts);
  afterAll(() => hosts.close());
  return { hosts, app };
}
