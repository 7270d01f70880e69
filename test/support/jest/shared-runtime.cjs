const { createRequire, isBuiltin } = require('node:module');
const path = require('node:path');
const { compileFunction, constants } = require('node:vm');
const { default: Runtime } = require('jest-runtime');
const { sourceMaps } = require('../../../scripts/lib/typescript-loader.cjs');

const ROOT = path.resolve(__dirname, '../../..');
/**
 * With the sources of the product, what is large and never changes (GitHub's schema takes as long as a whole test file), and
 * what keeps a process for the files of a worker.
 */
const SHARED =
  /^(src|packages\/[^/]+\/src|test\/fakes\/schemas|packages\/agent-server\/test\/support\/small-process)\//;
/** What tests use that stand beside the sources. */
const SUPPORT = /\.(contract|harness)\.js$/;

/**
 * Loads packages and the sources of the product with Node itself, once for all test files of a worker; only tests and
 * their support are loaded anew for each file (docs/adr/0017).
 */
class SharedRuntime extends Runtime {
  constructor(...given) {
    super(...given);
    const { executor } = this;
    executor.compile = (code, filename) =>
      compileFunction(code, executor.injectedModuleParameters, {
        filename,
        importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      });
  }

  /** What Jest's runner consists of: `expect` alone has forty files. The runner itself keeps the state of a file. */
  requireInternalModule(from, name) {
    return name ? createRequire(from)(name) : super.requireInternalModule(from, name);
  }

  requireModuleOrMock(from, name) {
    if (name === '@jest/globals' || isBuiltin(name)) {
      return super.requireModuleOrMock(from, name);
    }
    if (!name.startsWith('.')) {
      return createRequire(from)(name);
    }
    const file = path.resolve(path.dirname(from), name);
    return SHARED.test(path.relative(ROOT, file)) && !SUPPORT.test(file)
      ? createRequire(from)(file.replace(/\.js$/, '.ts'))
      : super.requireModuleOrMock(from, name);
  }

  /** Jest asks once, before it has loaded the test file, so a copy would lack that one's own map. */
  getSourceMaps() {
    const own = super.getSourceMaps();
    return {
      get: (file) => own.get(file) ?? sourceMaps.get(file),
      [Symbol.iterator]: () => [...own, ...sourceMaps].values(),
    };
  }
}

module.exports = { __esModule: true, default: SharedRuntime };
