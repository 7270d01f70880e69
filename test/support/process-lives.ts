import { readFile } from 'node:fs/promises';

/** Whether a process is running; a zombie is not. */
export async function processLives(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat !== '' && !/\) [ZX] /.test(stat);
}
