import { availableParallelism } from 'node:os';

const shared = {
  // Packages and sources are loaded once for each worker, not for each file (docs/adr/0017).
  runtime: '<rootDir>/test/support/jest/shared-runtime.cjs',
  testEnvironment: '<rootDir>/test/support/jest/shared-environment.cjs',
  resolver: '<rootDir>/test/support/jest/resolver.cjs',
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

/** Tests that start processes: the built service, sandboxes, shells, an embedded PostgreSQL. */
const SYSTEM_TESTS = [
  '/test/(?:system|kubernetes)/.*spec\\.ts$',
  '/test/contracts/(?:docker|kubernetes|process|tool-wrapper)\\..*spec\\.ts$',
  '\\.system\\.spec\\.ts$',
];

/** @type {import('jest').Config} */
export default {
  projects: [
    {
      ...shared,
      displayName: 'unit',
      roots: ['<rootDir>/src', '<rootDir>/packages/agent-protocol/src', '<rootDir>/packages/common/src'],
      testRegex: '\\.spec\\.ts$',
      testPathIgnorePatterns: ['/node_modules/', ...SYSTEM_TESTS],
    },
    {
      ...shared,
      displayName: 'agent-server',
      roots: ['<rootDir>/packages/agent-server/src'],
      testRegex: '\\.spec\\.ts$',
      testPathIgnorePatterns: ['/node_modules/', ...SYSTEM_TESTS],
    },
    {
      ...shared,
      displayName: 'http',
      roots: ['<rootDir>/test'],
      testRegex: '\\.(?:e2e-)?spec\\.ts$',
      testPathIgnorePatterns: ['/node_modules/', ...SYSTEM_TESTS],
      globalSetup: '<rootDir>/test/support/jest/start-database.cjs',
      globalTeardown: '<rootDir>/test/support/jest/stop-database.cjs',
    },
    {
      ...shared,
      displayName: 'system',
      roots: [
        '<rootDir>/src',
        '<rootDir>/packages/agent-server/src',
        '<rootDir>/packages/common/src',
        '<rootDir>/test',
      ],
      testRegex: SYSTEM_TESTS,
      globalSetup: '<rootDir>/test/support/jest/start-system.cjs',
      globalTeardown: '<rootDir>/test/support/jest/stop-database.cjs',
    },
  ],
  testSequencer: '<rootDir>/test/support/jest/longest-first.sequencer.cjs',
  reporters: ['default', '<rootDir>/test/support/jest/slowest-files.reporter.cjs'],
  // Bounds what hangs; a busy machine takes ten times as long as a quiet one.
  testTimeout: 60_000,
  // Most of a test's time is waiting, for other processes and for deadlines.
  maxWorkers: Math.max(4, availableParallelism()),
};
