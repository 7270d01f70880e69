/*
 * After this file is required, Node loads the TypeScript of this repository as ES modules, including decorators and
 * parameter properties. Compiled files are cached by their content.
 */
const { createHash } = require('node:crypto');
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { enableCompileCache, registerHooks } = require('node:module');
const path = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');
const swc = require('@swc/core');

const ROOT = path.resolve(__dirname, '../..');
const CACHE = path.join(ROOT, 'node_modules/.cache/slipway-typescript');
const OPTIONS = {
  swcrc: false,
  configFile: false,
  jsc: {
    target: 'es2022',
    parser: { syntax: 'typescript', decorators: true },
    transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
    keepClassNames: true,
    experimental: { keepImportAttributes: true },
  },
  module: { type: 'es6' },
  sourceMaps: true,
};
/** Only while coverage is measured: the library takes longer to load than this file. */
const coverage = process.env.SLIPWAY_COVERAGE === undefined ? undefined : require('./coverage.cjs');
const SALT = JSON.stringify([OPTIONS, swc.version, coverage?.OPTIONS]);

/** Source maps of the loaded files, by path and by URL, for the stack traces that Jest prints. */
const sourceMaps = new Map();

function compile(file, url) {
  const text = readFileSync(file, 'utf8');
  const stem = path.join(CACHE, createHash('sha1').update(SALT).update(file).update(text).digest('hex'));
  sourceMaps.set(file, `${stem}.map`);
  sourceMaps.set(url, `${stem}.map`);
  try {
    return readFileSync(`${stem}.mjs`, 'utf8');
  } catch {
    const { code, map } = swc.transformSync(coverage?.instrument(text, file) ?? text, {
      ...OPTIONS,
      filename: file,
    });
    write(`${stem}.map`, map);
    write(`${stem}.mjs`, code);
    return code;
  }
}

/** Writes atomically, because other workers may read the file at any moment. */
function write(file, text) {
  const partial = `${file}.${process.pid}`;
  writeFileSync(partial, text);
  renameSync(partial, file);
}

mkdirSync(CACHE, { recursive: true });
enableCompileCache(path.join(CACHE, 'v8'));
registerHooks({
  resolve(specifier, context, nextResolve) {
    if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
      return nextResolve(specifier.replace(/\.js$/, '.ts'), context);
    }
    return nextResolve(specifier, context);
  },
  load(url, context, nextLoad) {
    if (!url.startsWith('file:') || !url.endsWith('.ts') || url.includes('/node_modules/')) {
      return nextLoad(url, context);
    }
    const code = compile(fileURLToPath(url), url);
    const source = `${code}\n//# sourceMappingURL=${pathToFileURL(sourceMaps.get(url)).href}`;
    return { format: 'module', source, shortCircuit: true };
  },
});

module.exports = { sourceMaps, writeCoverage: () => coverage?.writeCoverage() };
