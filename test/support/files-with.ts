import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Files below a folder that have one of these texts; they may come and go meanwhile. */
export async function filesWith(folder: string, texts: readonly string[]): Promise<string[]> {
  await access(folder);
  const patterns = texts.flatMap((text) => ['-e', text]);
  const { stdout } = await run('grep', ['-rslF', ...patterns, folder]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout.split('\n').filter((line) => line !== '');
}
