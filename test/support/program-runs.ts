import { readdirSync } from 'node:fs';
import { ascending } from '@slipway/common/compare.js';

const SEEN_LENGTH = 2_000;

/**
 * The only export of each file `NAME<suffix>` of a folder, in the order of their names.
 *
 * @throws Error for a file that has others, or one of another name
 */
export async function namedExports<T extends { name: string }>(folder: URL, suffix: string): Promise<T[]> {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(suffix))
    .toSorted(ascending);
  return Promise.all(
    files.map(async (file) => {
      const exported: Record<string, T> = await import(new URL(file, folder).href);
      const [one, ...others] = Object.values(exported);
      if (one === undefined || others.length > 0 || `${one.name}${suffix}` !== file) {
        throw new Error(`${file} must have one export, with the name of the file`);
      }
      return one;
    }),
  );
}

/** To be pasted as it is: one line for each row. */
export function markdownTable(head: readonly string[], rows: readonly (readonly unknown[])[]): string {
  return [head, head.map(() => '---'), ...rows]
    .map(
      (cells) =>
        `| ${cells.map((cell) => oneLine(String(cell)).replaceAll('|', String.raw`\|`)).join(' | ')} |`,
    )
    .join('\n');
}

/** @param length of what is shown of it */
export function oneLine(text: string, length = SEEN_LENGTH): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}
