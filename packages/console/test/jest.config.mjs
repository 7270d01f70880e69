import config from '../../../jest.system.config.mjs';

const [system] = config.projects;

/** The page in a browser, against the built service. Each file has a world, in which what a user does builds on what was done. */
export default {
  ...system,
  displayName: 'console',
  rootDir: '../../..',
  roots: ['<rootDir>/packages/console/test'],
  testRegex: '\\.browser\\.ts$',
  // The demo's world brings a database of its own.
  globalSetup: '<rootDir>/packages/console/test/build.cjs',
  globalTeardown: undefined,
  reporters: ['default'],
  maxWorkers: 2,
  testTimeout: 300_000,
};
