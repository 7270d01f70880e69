/** Compares rather than subtracts: the difference of infinities is NaN. */
export function descending(a: number, b: number): number {
  return a === b ? 0 : a > b ? -1 : 1;
}

/** Compares by code unit, the same on every machine. */
export function ascending(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
