import { RunningSandboxQueries, type RunningSandbox } from '../../src/v1/sandboxes/sandbox.queries.js';
import type { TestApp } from './create-test-app.js';

/**
 * How the service reaches a sandbox.
 *
 * @throws Error when it does not run
 */
export async function runningSandbox({ app }: TestApp, id: string): Promise<RunningSandbox> {
  const found = await app.get(RunningSandboxQueries, { strict: false }).target(id);
  if (found === null) {
    throw new Error('the sandbox does not run');
  }
  return found;
}
