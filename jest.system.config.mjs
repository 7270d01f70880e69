import { runner, shared } from './jest.config.mjs';

/**
 * Tests that start processes: the built service, sandboxes, shells, an embedded PostgreSQL.
 *
 * @type {import('jest').Config}
 */
export default {
  ...runner,
  // Each starts processes, and some a database, a service and several sandboxes.
  testTimeout: 300_000,
  projects: [
    {
      ...shared,
      displayName: 'system',
      testRegex: ['/test/(?:system|kubernetes|keycloak)/.*spec\\.ts$', '\\.system\\.spec\\.ts$'],
      globalSetup: '<rootDir>/test/support/jest/start-system.cjs',
      globalTeardown: '<rootDir>/test/support/jest/stop-database.cjs',
    },
  ],
};
