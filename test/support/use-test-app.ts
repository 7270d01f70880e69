import { afterAll, beforeAll } from '@jest/globals';
import type { SandboxBackend } from '@slipway/sandboxes/sandbox-backend.js';
import { createTestApp, type TestApp, type TestParts } from './create-test-app.js';

type Environment = Record<string, string>;
/** A backend that holds something is closed after the application. */
export type Parts = Omit<TestParts, 'sandboxBackend'> & {
  sandboxBackend?: SandboxBackend & { close?(): Promise<void> };
};

/**
 * The application of a file or a `describe`, from before its tests until after them; what it returns has its members
 * only meanwhile.
 *
 * @param environment a function where it needs what it starts itself, or an earlier `beforeAll` has started
 * @param atEnd what is looked at after the last test
 */
export function useTestApp(
  environment: Environment | (() => Environment | Promise<Environment>) = {},
  parts: Parts = {},
  atEnd: (app: TestApp) => Promise<void> = () => Promise.resolve(),
): TestApp {
  const app = {} as TestApp;
  beforeAll(async () => {
    const variables = typeof environment === 'function' ? await environment() : environment;
    Object.assign(app, await createTestApp(variables, undefined, parts));
  });
  afterAll(async () => {
    await atEnd(app);
    await app.close();
    await parts.sandboxBackend?.close?.();
  });
  return app;
}
