import config from '../../jest.config.mjs';

const system = config.projects.find(({ displayName }) => displayName === 'system');

/** The page in a browser, against the built service. Each file has a world, in which what a user does builds on what was done. */
export default {
  ...system,
  displayName: 'console',
  rootDir: '../..',
  roots: ['<rootDir>/test/console'],
  testRegex: '\\.browser\\.ts$',
  // The demo's world brings a database of its own.
  globalSetup: '<rootDir>/test/console/build.cjs',
  globalTeardown: undefined,
  reporters: ['default'],
  maxWorkers: 2,
  testTimeout: 60_000,
};
