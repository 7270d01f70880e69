const { globSync } = require('node:fs');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '../../..');
/** They put everything together: a change of one part would be one of every test that starts the application. */
const PUTS_TOGETHER =
  /\.module\.ts$|\/test\/support\/create-test-app\.ts$|\/agent-server\/src\/(start-agent-server|engine\/native\/native-tools)\.ts$/;
const sources = globSync('{src,packages/agent-server/src}/**/*.ts', { cwd: ROOT })
  .map((name) => name.split(path.sep).join('/'))
  .filter((name) => !name.endsWith('.spec.ts'))
  .toSorted();

/** The folder of sources that is named like that of a test over HTTP: src/settings, src/v1/sandboxes. */
function featureOf(file) {
  const [, feature] = /^test\/([\w-]+)\/.*spec\.ts$/.exec(file) ?? [];
  return feature === undefined ? [] : sources.filter((name) => RegExp(`^src/(v1/)?${feature}/`).test(name));
}

/** For Jest's `--changedSince`: on which files the behaviour of a file depends (docs/adr/0064). */
module.exports = {
  extract(code, file, extract) {
    if (PUTS_TOGETHER.test(file)) {
      return new Set();
    }
    // Types are the compiler's business, and what is loaded when it is needed (an adapter of a git host) has tests of its own.
    const needed = code.replaceAll(/^(import|export) type [^;]*;|\bimport\(/gm, '');
    const own = path.relative(ROOT, file).split(path.sep).join('/');
    const tested = featureOf(own).map((name) => path.posix.relative(path.posix.dirname(own), name));
    return new Set([...extract(needed), ...tested]);
  },

  getCacheKey() {
    return sources.join('\n');
  },
};
