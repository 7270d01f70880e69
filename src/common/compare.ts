/** Orders numbers from high to low, also infinities, whose difference would be NaN. */
export function descending(a: number, b: number): number {
  return a === b ? 0 : a > b ? -1 : 1;
}

/** Orders texts by code unit, the same on every machine. */
export function ascending(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
