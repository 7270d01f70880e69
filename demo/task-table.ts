import { jsonNumber, jsonText } from '../src/common/json-access.js';

const COLUMNS = ['git_provider', 'task_type', 'repo', 'issue_number', 'title'] as const;

/** Suggested tasks as an aligned table, one line each, under the names of their members. */
export function taskTable(tasks: unknown): string[] {
  const rows = (Array.isArray(tasks) ? tasks : []).map((task: unknown) =>
    COLUMNS.map((column) => jsonText(task, column) ?? `${jsonNumber(task, column) ?? ''}`),
  );
  const all = [[...COLUMNS], ...rows];
  const widths = COLUMNS.map((_column, index) => Math.max(...all.map((row) => row[index]?.length ?? 0)));
  return all.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
