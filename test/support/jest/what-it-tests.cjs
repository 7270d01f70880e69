const { globSync } = require('node:fs');
const path = require('node:path');

const ROOT = path.resolve(__dirname, '../../..');
/** They put everything together: a change of one part would be one of every test that starts the program. */
const PUTS_TOGETHER = /\.module\.ts$|\/(create-test-app|start-agent-server)\.ts$/;
const FEATURE = /^(src\/(?:v1\/)?|packages\/)[\w-]+\//;
const sources = globSync('{src,packages/*/src}/**/*.ts', { cwd: ROOT })
  .map((name) => name.split(path.sep).join('/'))
  .filter((name) => !name.endsWith('.spec.ts'))
  .toSorted();

/** The folders of sources that are named like that of a test over HTTP: src/settings, src/v1/sandboxes, packages/sandboxes. */
function testedBy(file) {
  const [, feature] = /^test\/([\w-]+)\/.*spec\.ts$/.exec(file) ?? [];
  return feature === undefined
    ? []
    : sources.filter((name) => RegExp(`^(src/(v1/)?|packages/)${feature}/`).test(name));
}

/** For Jest's `--changedSince`: on which files the behaviour of a file depends (docs/adr/0064). */
module.exports = {
  extract(code, file, extract) {
    if (PUTS_TOGETHER.test(file)) {
      return new Set();
    }
    const own = path.relative(ROOT, file).split(path.sep).join('/');
    const from = path.posix.dirname(own);
    // Types are the compiler's business, and what is loaded when it is needed (an adapter of a git host) has tests of its own.
    const needed = [...extract(code.replaceAll(/^(import|export) type [^;]*;|\bimport\(/gm, ''))];
    const [feature] = FEATURE.exec(own) ?? [];
    return new Set(
      feature === undefined || own.endsWith('.spec.ts')
        ? [...needed, ...testedBy(own).map((name) => path.posix.relative(from, name))]
        : // What a feature takes of another is tested there.
          needed.filter((name) => path.posix.join(from, name).startsWith(feature)),
    );
  },

  getCacheKey() {
    return sources.join('\n');
  },
};
