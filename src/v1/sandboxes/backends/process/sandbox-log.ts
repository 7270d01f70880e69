import { copyFile, open, stat, truncate } from 'node:fs/promises';

const TAIL_BYTES = 4096;

/** The last whole lines of a log, at most 4 KB; empty when there is none. */
export async function readLogTail(file: string): Promise<string> {
  const size = await sizeOf(file);
  if (size === 0) {
    return '';
  }
  const handle = await open(file, 'r');
  try {
    const start = Math.max(0, size - TAIL_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(TAIL_BYTES), 0, TAIL_BYTES, start);
    const text = buffer.toString('utf8', 0, bytesRead);
    return start === 0 ? text : text.slice(text.indexOf('\n') + 1);
  } finally {
    await handle.close();
  }
}

/**
 * Puts a log aside that has grown large, in place of the one before, and begins anew. The program goes on writing to
 * the same file, which it has open for appending; what it writes in between may be lost.
 */
export async function capLog(file: string, maxBytes: number): Promise<void> {
  if ((await sizeOf(file)) > maxBytes) {
    await copyFile(file, `${file}.1`);
    await truncate(file);
  }
}

async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => null))?.size ?? 0;
}
