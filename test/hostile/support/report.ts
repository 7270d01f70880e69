import { markdownTable } from '../../support/program-runs.js';
import type { Attack, AttackedBackend, Sighting } from '../attack.js';

/** A row of the table. */
export interface Result {
  attack: string;
  backend: AttackedBackend;
  finding: string;
  expected: string;
  seen: string;
  verdict: 'passed' | 'FAILED';
  passed: boolean;
  seconds: string;
}

const BEYOND_THE_PROMISE = 'held, though not promised';
const HEAD = ['attack', 'finding', 'backend', 'expected', 'seen', 'verdict'] as const;

/** Compares what was seen with what was expected; an error of the attack itself never passes. */
export function resultOf(
  attack: Attack,
  backend: AttackedBackend,
  sighting: Sighting | Error,
  tookMs: number,
): Result {
  const expected = attack.expected[backend];
  if (expected === undefined) {
    throw new Error(`${attack.name} does not apply to ${backend}`);
  }
  const broken = sighting instanceof Error;
  const passed = !broken && (sighting.held || expected.outcome === 'not promised');
  return {
    attack: attack.name,
    backend,
    finding: String(attack.finding),
    expected: `${expected.outcome}: ${expected.because}`,
    seen: broken ? `the attack did not work: ${sighting.message}` : seenText(sighting, expected.outcome),
    verdict: passed ? 'passed' : 'FAILED',
    passed,
    seconds: (tookMs / 1000).toFixed(1),
  };
}

export function table(results: Result[]): string {
  return markdownTable(
    HEAD,
    results.map((result) => HEAD.map((column) => result[column])),
  );
}

function seenText({ held, seen }: Sighting, outcome: 'held' | 'not promised'): string {
  if (held) {
    return `${outcome === 'held' ? 'held' : BEYOND_THE_PROMISE}: ${seen}`;
  }
  return `not held: ${seen}`;
}
