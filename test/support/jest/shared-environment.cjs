const { ModernFakeTimers } = require('@jest/fake-timers');
const { ModuleMocker } = require('jest-mock');
const { installCommonGlobals } = require('jest-util');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { flushCompileCache } = require('node:module');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { writeCoverage } = require('../../../scripts/lib/typescript-loader.cjs');

const { process, console } = globalThis;
// Jest's own modules look here for the clock and the files that a test cannot fake. The copy of `process` that comes
// with it is for realms of their own.
installCommonGlobals(globalThis, {}, 'off');
globalThis.process = process;

const EVENT_HANDLERS = Symbol.for('EVENT_HANDLERS');
const STATE = 'JEST_STATE_SYMBOL';
/** What `jest.setTimeout` of a file sets. */
const TIMEOUT = Symbol.for('TEST_TIMEOUT_SYMBOL');

/** No name is made of the account and the host, so a test that commits says who does. */
const GIT_CONFIG = '[user]\n\tuseConfigOnly = true\n[init]\n\tdefaultBranch = main\n';

/**
 * Jest's runner keeps its state and its event handlers in the realm, and adds to the handlers that it finds. Without
 * this, each test of the hundredth file of a worker would be reported a hundred times, and no file would ever be freed.
 */
function forgetRunner() {
  for (const symbol of Object.getOwnPropertySymbols(globalThis)) {
    if (symbol === EVENT_HANDLERS || symbol === TIMEOUT || symbol.description === STATE) {
      delete globalThis[symbol];
    }
  }
}

/**
 * Runs every test file of a worker in the worker's own realm, so that the files can share loaded modules
 * (docs/adr/0017). What a file changes in `process.env`, `console` and the timers is undone after it.
 */
module.exports = class SharedEnvironment {
  constructor({ projectConfig }) {
    this.global = globalThis;
    this.moduleMocker = new ModuleMocker(globalThis);
    this.fakeTimers = null;
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
    this.variables = { ...process.env };
    this.isSystem = projectConfig.displayName?.name === 'system';
    this.exit = Object.getOwnPropertyDescriptor(process, 'exit');
    this.home = null;
  }

  async setup() {
    // System tests start real sandboxes, which have a `/dev` of their own.
    const { SLIPWAY_TEST_TEMPORARY: temporary } = process.env;
    if (temporary && !this.isSystem) {
      process.env.TMPDIR = temporary;
    }
    this.setGitConfiguration();
  }

  /** Tests, and the tools that they start, find neither the git configuration nor the home of the account that runs them. */
  setGitConfiguration() {
    for (const name of Object.keys(process.env).filter((each) => each.startsWith('GIT_'))) {
      delete process.env[name];
    }
    this.home = mkdtempSync(path.join(tmpdir(), 'home-'));
    writeFileSync(path.join(this.home, '.gitconfig'), GIT_CONFIG);
    process.env.GIT_CONFIG_GLOBAL = path.join(this.home, '.gitconfig');
    process.env.GIT_CONFIG_NOSYSTEM = '1';
    // Some sandboxes of system tests keep programs that are installed in the home.
    if (!this.isSystem) {
      process.env.HOME = this.home;
    }
  }

  async teardown() {
    this.fakeTimersModern.dispose();
    globalThis.console = console;
    Object.defineProperty(process, 'exit', this.exit);
    for (const name of Object.keys(process.env)) {
      if (!Object.hasOwn(this.variables, name)) {
        delete process.env[name];
      }
    }
    Object.assign(process.env, this.variables);
    rmSync(this.home, { recursive: true, force: true, maxRetries: 10 });
    forgetRunner();
    this.global = null;
    // A worker that has all of it to write when it ends takes longer than Jest waits, and is killed before it is written.
    flushCompileCache();
    writeCoverage();
  }

  exportConditions() {
    return ['node', 'node-addons'];
  }

  /** Jest asks for it, and SharedRuntime ignores it. */
  getVmContext() {
    return {};
  }
};
