/*
 * Coverage of the sources that scripts/lib/typescript-loader.cjs loads while SLIPWAY_COVERAGE names a folder. Counters are
 * added to the TypeScript itself, before it is compiled: so positions are those of the sources, and what the compiler adds
 * (the types in decorators) is no branch.
 */
const { randomUUID } = require('node:crypto');
const { mkdirSync, writeFileSync } = require('node:fs');
const path = require('node:path');
const { createInstrumenter } = require('istanbul-lib-instrument');

const ROOT = path.resolve(__dirname, '../..');
const FOLDER = process.env.SLIPWAY_COVERAGE;
/** Process ids come again. */
const OWN_FILE = `${randomUUID()}.json`;
const OPTIONS = {
  esModules: true,
  compact: false,
  coverageGlobalScope: 'globalThis',
  coverageGlobalScopeFunc: false,
  parserPlugins: ['typescript', 'decorators-legacy'],
};
/** The console has tests of its own, in a browser. */
const COUNTED = /^(?:src|packages\/(?!console\/)[^/]+\/src)\/(?!.*\.spec\.ts$).*\.ts$/;
/** The library's name for what it counts, as a member of the realm. */
const COUNTERS = '__coverage__';
const instrumenter = createInstrumenter(OPTIONS);

/** @returns the TypeScript with counters, if the file is a source of the product */
function instrument(text, file) {
  const name = path.relative(ROOT, file).split(path.sep).join('/');
  return COUNTED.test(name) ? instrumenter.instrumentSync(text, name) : text;
}

/** @returns the counters of a file that no test has loaded */
function uncovered(text, file) {
  instrument(text, file);
  return instrumenter.lastFileCoverage();
}

/** Each process has a file of its own, and writes it whenever it may soon be killed. */
function writeCoverage() {
  const counters = globalThis[COUNTERS];
  if (FOLDER !== undefined && counters !== undefined) {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(path.join(FOLDER, OWN_FILE), JSON.stringify(counters));
  }
}

module.exports = { COUNTED, OPTIONS, instrument, uncovered, writeCoverage };
