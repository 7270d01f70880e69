import { describe, expect, it } from '@jest/globals';
import type { Signal } from '../git-providers/git-provider.types.js';
import { classifyChangeRequest, lacksAgentInstructions } from './classify.js';

const SIGNALS: Signal[] = ['yes', 'no', 'unknown'];

describe('classifyChangeRequest', () => {
  it.each(
    SIGNALS.flatMap((conflicts) =>
      SIGNALS.flatMap((failingChecks) =>
        SIGNALS.flatMap((unresolvedComments) =>
          [true, false].map((draft) => {
            const expected =
              conflicts === 'yes'
                ? 'MERGE_CONFLICTS'
                : failingChecks === 'yes'
                  ? 'FAILING_CHECKS'
                  : unresolvedComments === 'yes'
                    ? 'UNRESOLVED_COMMENTS'
                    : draft
                      ? null
                      : 'OPEN_PR';
            return { conflicts, failingChecks, unresolvedComments, draft, expected };
          }),
        ),
      ),
    ),
  )(
    'conflicts=$conflicts checks=$failingChecks comments=$unresolvedComments draft=$draft is $expected',
    ({ expected, ...change }) => {
      expect(classifyChangeRequest(change)).toBe(expected);
    },
  );
});

describe('lacksAgentInstructions', () => {
  it.each([
    { usable: true, writable: true, hasAgentInstructions: false, expected: true },
    { usable: true, writable: true, hasAgentInstructions: true, expected: false },
    { usable: true, writable: false, hasAgentInstructions: false, expected: false },
    { usable: false, writable: true, hasAgentInstructions: false, expected: false },
  ])(
    'usable=$usable writable=$writable instructions=$hasAgentInstructions: $expected',
    ({ expected, ...facts }) => {
      expect(lacksAgentInstructions({ name: 'a/b', activeAt: 1, ...facts })).toBe(expected);
    },
  );
});
