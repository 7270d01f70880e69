import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';

export const shared = {
  // Packages and sources are loaded once for each worker, not for each file (docs/adr/0017).
  runtime: '<rootDir>/test/support/jest/shared-runtime.cjs',
  testEnvironment: '<rootDir>/test/support/jest/shared-environment.cjs',
  resolver: '<rootDir>/test/support/jest/resolver.cjs',
  // What `npm test -- --changed` goes by (docs/adr/0064).
  dependencyExtractor: '<rootDir>/test/support/jest/what-it-tests.cjs',
  // Changes anywhere are seen; `testRegex` says which tests a project has.
  roots: [
    '<rootDir>/src',
    '<rootDir>/test',
    ...globSync('packages/*', { cwd: import.meta.dirname })
      // It has tests of its own, in a browser.
      .filter((name) => path.basename(name) !== 'console')
      .map((name) => `<rootDir>/packages/${path.basename(name)}`),
  ],
  // Tests themselves are compiled to CommonJS (docs/adr/0002).
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
          keepClassNames: true,
        },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
  transformIgnorePatterns: ['/node_modules/'],
};

/** What starts processes (the built service, sandboxes, shells, an embedded PostgreSQL) is in jest.system.config.mjs. */
const SYSTEM_TESTS = ['<rootDir>/test/(?:system|kubernetes|keycloak)/', '\\.system\\.spec\\.ts$'];

export const runner = {
  testSequencer: '<rootDir>/test/support/jest/longest-first.sequencer.cjs',
  reporters: ['default', '<rootDir>/test/support/jest/slowest-files.reporter.cjs'],
  // Bounds what hangs; a busy machine takes ten times as long as a quiet one.
  testTimeout: 60_000,
  // Most of a test's time is waiting, for other processes and for deadlines.
  maxWorkers: Math.max(4, availableParallelism()),
};

/** @type {import('jest').Config} */
export default {
  ...runner,
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testRegex: '\\.spec\\.ts$',
      testPathIgnorePatterns: [...SYSTEM_TESTS, '<rootDir>/test/', '<rootDir>/packages/agent-server/'],
    },
    {
      ...shared,
      displayName: 'agent-server',
      testRegex: '/packages/agent-server/.*\\.(?:e2e-)?spec\\.ts$',
      testPathIgnorePatterns: SYSTEM_TESTS,
      globalSetup: '<rootDir>/test/support/jest/make-folder.cjs',
      globalTeardown: '<rootDir>/test/support/jest/remove-folder.cjs',
    },
    {
      ...shared,
      displayName: 'http',
      testRegex: '\\.(?:e2e-)?spec\\.ts$',
      testPathIgnorePatterns: [...SYSTEM_TESTS, '<rootDir>/src/', '<rootDir>/packages/(?!database/test/)'],
      globalSetup: '<rootDir>/test/support/jest/start-database.cjs',
      globalTeardown: '<rootDir>/test/support/jest/stop-database.cjs',
    },
  ],
};
