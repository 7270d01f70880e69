import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const DEPTH = 2;
const MAX_ENTRIES = 1_000;
const SKIPPED = new Set(['node_modules', '__pycache__']);

/** What is in a folder and in the folders of it, hidden entries and packages left out, one path a line. */
export async function listFolder(folder: string): Promise<string> {
  const lines: string[] = [];
  await list(folder, '', DEPTH, lines);
  const shown = lines.slice(0, MAX_ENTRIES);
  const missing = lines.length > MAX_ENTRIES ? ['[... more entries left out ...]'] : [];
  return [...shown, ...missing].join('\n');
}

async function list(folder: string, prefix: string, depth: number, lines: string[]): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  const visible = entries
    .filter(({ name }) => !name.startsWith('.'))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1));
  for (const entry of visible) {
    if (lines.length > MAX_ENTRIES) {
      return;
    }
    lines.push(`${prefix}${entry.name}${entry.isDirectory() ? '/' : ''}`);
    if (entry.isDirectory() && depth > 1 && !SKIPPED.has(entry.name)) {
      await list(join(folder, entry.name), `${prefix}${entry.name}/`, depth - 1, lines);
    }
  }
}
