/** Where a command writes: results are for pipes, notes are for the person at the terminal. */
export interface CliOutput {
  /** One line on standard output. */
  result(line: string): void;
  /** One line on standard error. */
  note(line: string): void;
}
