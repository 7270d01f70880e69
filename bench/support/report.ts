/** One line of the table at the end. */
export interface Outcome {
  what: string;
  target: string;
  measured: string;
  reached: boolean;
}

/** Prints a line of progress or result. */
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

/** `median (min..max)` with this many digits after the point. */
export function spread(values: readonly number[], digits: number): string {
  const text = (value: number) => value.toFixed(digits);
  return `${text(median(values))} (${text(Math.min(...values))}..${text(Math.max(...values))})`;
}
