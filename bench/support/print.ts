/** Prints a line of progress or result. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
