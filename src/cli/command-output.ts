/** Results go to standard output for pipes, notes to standard error for the operator. */
export interface CommandOutput {
  result(line: string): void;
  note(line: string): void;
}

/** Replaces control characters: users and models choose texts that a terminal shows here. */
export function plainText(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]/gu, '\u{fffd}');
}

/** Aligned columns, a line for each row; the first row is the header. */
export function textTable(rows: readonly (readonly string[])[]): string[] {
  const shown = rows.map((row) => row.map((cell) => cell.replaceAll(/\p{Cc}/gu, '\u{fffd}')));
  const widths = (shown[0] ?? []).map((_, column) =>
    Math.max(...shown.map((row) => (row[column] ?? '').length)),
  );
  return shown.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
