/** The middle value; the mean of the two middle ones of an even number. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const lower = sorted[Math.ceil(middle) - 1];
  const upper = sorted[Math.floor(middle)];
  if (lower === undefined || upper === undefined) {
    throw new Error('there is no median of nothing');
  }
  return (lower + upper) / 2;
}

/** `median (min..max)` with as many digits after the point. */
export function spread(values: readonly number[], digits: number): string {
  const text = (value: number) => value.toFixed(digits);
  return `${text(median(values))} (${text(Math.min(...values))}..${text(Math.max(...values))})`;
}
