/** One line of the table at the end. */
export interface Outcome {
  what: string;
  target: string;
  measured: string;
  reached: boolean;
}

interface Measure {
  unit?: string;
  digits?: number;
  /** Behind the figure. */
  note?: string;
}

/** A bounded figure, or the median of several. */
export function atMost(
  what: string,
  figures: number | readonly number[],
  max: number,
  { unit = 'ms', digits = 0, note = '' }: Measure = {},
): Outcome {
  const isOne = typeof figures === 'number';
  const text = isOne ? figures.toFixed(digits) : spread(figures, digits);
  return {
    what,
    target: `<= ${max}${unit && ` ${unit}`}`,
    measured: `${text}${unit && ` ${unit}`}${note && ` (${note})`}`,
    reached: (isOne ? figures : median(figures)) <= max,
  };
}

/** The median of several figures, which is to reach a bound. */
export function atLeast(
  what: string,
  figures: readonly number[],
  min: number,
  { unit = '' }: Measure,
): Outcome {
  const [target, measured] = [`>= ${min} ${unit}`, `${spread(figures, 0)} ${unit}`];
  return { what, target, measured, reached: median(figures) >= min };
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The middle value, or the mean of the two middle ones. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const lower = sorted[Math.ceil(middle) - 1];
  const upper = sorted[Math.floor(middle)];
  if (lower === undefined || upper === undefined) {
    throw new Error('the median of no values is undefined');
  }
  return (lower + upper) / 2;
}

/** @param sorted ascending */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** `median (min..max)` with this many digits after the point. */
export function spread(values: readonly number[], digits: number): string {
  const text = (value: number) => value.toFixed(digits);
  return `${text(median(values))} (${text(Math.min(...values))}..${text(Math.max(...values))})`;
}

/** Milliseconds that the work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
