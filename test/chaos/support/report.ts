import { markdownTable } from '../../support/program-runs.js';
import { NotTried, type Outcome } from '../scenario.js';

/** What one scenario came to. */
export interface Row {
  name: string;
  result: Outcome | Error;
  seconds: number;
}

/** Faults that other programs do, where the engine and the cluster are. */
const ELSEWHERE = [
  ['replicas restarted one by one', 'npm run rolling'],
  ['damage done by a tenant', 'npm run hostile'],
];
const COUNTS = ['faults', 'acknowledged', 'lost', 'doubled', 'stuck', 'orphaned'] as const;

/** One line, and what went wrong below it. */
export function summary({ name, result, seconds }: Row, isVerbose: boolean): string {
  const took = `(${seconds.toFixed(1)} s)`;
  if (result instanceof NotTried) {
    return `skipped ${name} ${took}: ${result.message}`;
  }
  if (result instanceof Error) {
    return `FAILED  ${name} ${took}: ${result.message}`;
  }
  const counts = COUNTS.map((count) => `${count} ${result[count]}`).join(', ');
  const verdict = result.problems.length === 0 ? 'passed ' : 'FAILED ';
  const notes = isVerbose ? result.notes.map((note) => `          ${note}`) : [];
  const problems = distinct(result.problems).map((problem) => `  PROBLEM ${problem}`);
  return [`${verdict} ${name} ${took}: ${counts}`, ...notes, ...problems].join('\n');
}

export function table(rows: Row[]): string {
  const body = rows.map(({ name, result, seconds }) => [
    name,
    ...COUNTS.map((count) => (result instanceof Error ? '-' : String(result[count]))),
    seconds.toFixed(0),
    verdictOf(result),
  ]);
  const done = rows.flatMap(({ result }) => (result instanceof Error ? [] : [result]));
  const sums = COUNTS.map((count) => String(done.reduce((sum, outcome) => sum + outcome[count], 0)));
  const seconds = rows.reduce((sum, row) => sum + row.seconds, 0).toFixed(0);
  const head = ['scenario', ...COUNTS, 'seconds', 'verdict'];
  const lines = markdownTable(head, [...body, ['all', ...sums, seconds, '']]);
  const elsewhere = ELSEWHERE.map(([what, command]) => `not here: ${what} (${command})`);
  return [lines, '', ...elsewhere].join('\n');
}

function verdictOf(result: Outcome | Error): string {
  if (result instanceof NotTried) {
    return 'not tried';
  }
  return result instanceof Error || result.problems.length > 0 ? 'FAILED' : 'passed';
}

/** The same failure of many requests is one sentence. */
function distinct(problems: string[]): string[] {
  const counts = new Map<string, number>();
  for (const problem of problems) {
    const kind = problem.replace(/ at [\d.]+ s:/, ':').replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, '…');
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return [...counts].map(([kind, times]) => (times === 1 ? kind : `${kind} (${times} times)`));
}
