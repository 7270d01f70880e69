const { default: Sequencer } = require('@jest/test-sequencer');

/**
 * What starts most programs goes first, while the workers are small: each start copies the memory tables of its worker. The
 * shortest files go last, so no worker is left with a long one.
 */
const PROJECTS = ['agent-server', 'http', 'unit'];

/** Begins with what has failed; within a project, Jest begins with the files that took longest, or are largest. */
module.exports = class LongestFirstSequencer extends Sequencer {
  async sort(tests) {
    // oxlint-disable-next-line unicorn/no-array-sort -- a method of Jest, not of an array
    const ordered = await super.sort(tests);
    const rankOf = (test) =>
      this.hasFailed(test) ? -1 : PROJECTS.indexOf(test.context.config.displayName?.name);
    return ordered.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
};
