import type { FuzzTarget } from '../fuzz-target.js';
import type { FuzzReport, Phase, Schemathesis } from './schemathesis.js';

export interface FuzzOptions {
  /** How many requests at least. */
  cases: number;
  seed: number;
  /** Operations with the text in their names; null: all. */
  only: string | null;
  /** When to stop, by `performance.now()`. */
  deadline: number;
  print: (line: string) => void;
}

export type FuzzFailure = FuzzReport['failures'][number];

/** What one target answered. */
export interface FuzzResult {
  target: string;
  operations: number;
  /** Operations whose answers were not as they should be. */
  failedOperations: number;
  cases: number;
  /** How many there were to be. */
  wanted: number;
  /** Requests by the first digit of their status. */
  byClass: Map<string, number>;
  /** Each kind of failure at each operation, once. */
  failures: FuzzFailure[];
  /** What looked like a failure and is wanted: how often, and why. */
  exceptions: { because: string; count: number }[];
  seconds: number;
}

/** From here on the boundaries of every member are tried one by one; that takes some thousand requests. */
const COVERAGE_FROM = 10_000;
/** A pass makes about as many requests for each operation as it is told, a little more with sequences. */
const LEAST_EXAMPLES = 2;
const MOST_EXAMPLES = 60;
const SHORTEST_PASS_SECONDS = 5;

/** Sends at least as many requests as wanted, in passes with seeds that follow each other. */
export async function fuzz(
  schemathesis: Schemathesis,
  target: FuzzTarget,
  { cases, seed, only, deadline, print }: FuzzOptions,
): Promise<FuzzResult> {
  const started = performance.now();
  const reports: FuzzReport[] = [];
  const done = () => sum(reports.flatMap(({ answers }) => answers.map(({ count }) => count)));
  const secondsLeft = () => (deadline - performance.now()) / 1000;
  const pass = async (phases: readonly Phase[], maxExamples: number): Promise<number> => {
    const before = done();
    const report = await schemathesis.run(target, {
      phases,
      maxExamples,
      seed: seed + reports.length,
      only,
      maxSeconds: secondsLeft(),
    });
    reports.push(report);
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    print(`${target.name}: ${done()} of ${cases} cases after ${seconds} s (${phases.join(', ')})`);
    return done() - before;
  };
  if (cases >= COVERAGE_FROM) {
    await pass(['examples', 'coverage'], 1);
  }
  let made = Infinity;
  while (done() < cases && secondsLeft() > SHORTEST_PASS_SECONDS && made > 0) {
    const share = Math.ceil((cases - done()) / target.operations);
    made = await pass(['fuzzing', 'stateful'], Math.min(Math.max(share, LEAST_EXAMPLES), MOST_EXAMPLES));
  }
  return {
    target: target.name,
    operations: operationsOf(reports).length,
    failedOperations: new Set(reports.flatMap(({ failures }) => failures.map(({ operation }) => operation)))
      .size,
    cases: done(),
    wanted: cases,
    byClass: byClassOf(reports),
    failures: merged(reports.flatMap(({ failures }) => failures)),
    exceptions: target.wanted.map(({ because }, at) => ({
      because,
      count: sum(reports.map(({ wanted }) => wanted[at] ?? 0)),
    })),
    seconds: (performance.now() - started) / 1000,
  };
}

function operationsOf(reports: readonly FuzzReport[]): string[] {
  return [...new Set(reports.flatMap(({ answers }) => answers.map(({ operation }) => operation)))];
}

function byClassOf(reports: readonly FuzzReport[]): Map<string, number> {
  const classes = new Map<string, number>();
  for (const { status, count } of reports.flatMap(({ answers }) => answers)) {
    const name = `${Math.floor(status / 100)}xx`;
    classes.set(name, (classes.get(name) ?? 0) + count);
  }
  return classes;
}

/** The same failure of two passes is one. */
function merged(failures: readonly FuzzFailure[]): FuzzFailure[] {
  const groups = Map.groupBy(failures, ({ operation, check, status }) => `${operation} ${check} ${status}`);
  return [...groups.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ ...first, count: sum([first, ...others].map(({ count }) => count)) }],
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
