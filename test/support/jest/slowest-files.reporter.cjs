const path = require('node:path');

const SHOWN = 10;

/** Prints the slowest test files of a run: the first place to look when the tests become a burden. */
module.exports = class SlowestFilesReporter {
  onRunComplete(_contexts, { testResults }) {
    if (testResults.length <= SHOWN) {
      return;
    }
    const slowest = testResults
      .map(({ testFilePath, perfStats }) => ({ file: testFilePath, seconds: perfStats.runtime / 1000 }))
      .toSorted((a, b) => b.seconds - a.seconds)
      .slice(0, SHOWN);
    process.stderr.write(`\nThe ${SHOWN} slowest test files:\n`);
    for (const { file, seconds } of slowest) {
      process.stderr.write(`${seconds.toFixed(1).padStart(7)} s  ${path.relative(process.cwd(), file)}\n`);
    }
  }
};
