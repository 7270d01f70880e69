const { default: Sequencer } = require('@jest/test-sequencer');
const path = require('node:path');

/**
 * What starts most programs goes first, while the workers are small: each start copies the memory tables of its worker. The
 * shortest files go last, so no worker is left with a long one.
 */
const PROJECTS = ['system', 'agent-server', 'http', 'unit'];

/** Files that take long for their size, the longest first: where no run has measured them, Jest begins with the largest. */
const LONG = [
  'sealed-sandbox.e2e-spec.ts',
  'crashes.e2e-spec.ts',
  'outside-credentials.e2e-spec.ts',
  'egress-clients.e2e-spec.ts',
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

/** Begins with what has failed; within a project, with the files that took longest, or are known to. */
module.exports = class LongestFirstSequencer extends Sequencer {
  async sort(tests) {
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of Jest, not of an array
    const ordered = await super.sort(tests);
    const rankOf = (test) =>
      this.hasFailed(test) ? -1 : PROJECTS.indexOf(test.context.config.displayName?.name);
    return ordered.toSorted((a, b) => rankOf(a) - rankOf(b) || lengthOf(a) - lengthOf(b));
  }
};
