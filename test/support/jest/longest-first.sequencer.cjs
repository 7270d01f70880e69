const { default: Sequencer } = require('@jest/test-sequencer');
const path = require('node:path');

/** Projects by how long a file of theirs takes as a rule. */
const LONGEST_FIRST = ['system', 'http', 'agent-server', 'unit'];

/** Files that take long for their size, the longest first. */
const LONG = [
  'crashes.e2e-spec.ts',
  'process.sandbox-backend.contract.system.spec.ts',
  'agents.e2e-spec.ts',
  'replicas.e2e-spec.ts',
  'acp.engine.system.spec.ts',
  'terminal.tool.system.spec.ts',
  'remote-access.system.spec.ts',
  'fix-failing-test.e2e-spec.ts',
];

function lengthOf(test) {
  const index = test.duration === undefined ? LONG.indexOf(path.basename(test.path)) : -1;
  return index === -1 ? LONG.length : index;
}

/**
 * Where no run has measured the files yet, as in a fresh clone, Jest begins with the largest. The slowest suites are small
 * files that call a contract, so they would begin last and leave the other workers without work.
 */
module.exports = class LongestFirstSequencer extends Sequencer {
  async sort(tests) {
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of Jest, not of an array
    const ordered = await super.sort(tests);
    const rankOf = (test) =>
      test.duration === undefined
        ? 1 + LONGEST_FIRST.indexOf(test.context.config.displayName?.name)
        : this.hasFailed(test)
          ? 0
          : 1 + LONGEST_FIRST.length;
    return ordered.toSorted((a, b) => rankOf(a) - rankOf(b) || lengthOf(a) - lengthOf(b));
  }
};
