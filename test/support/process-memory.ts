import { type FileHandle, open, readdir, readFile } from 'node:fs/promises';

/** A piece of memory is read at a time; a text may run over the border of two. */
const PIECE = 8 * 1024 * 1024;

/** Ids of the processes whose environment has a text. Needs their user's rights. */
export async function processesWith(text: string): Promise<number[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = pids.map(async (pid) => {
    // It may have ended.
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    return environment.includes(text) ? [pid] : [];
  });
  return (await Promise.all(found)).flat();
}

/** Which of the texts are in what a process can write to, or in its environment and arguments. */
export async function foundInMemory(pid: number, texts: readonly string[]): Promise<string[]> {
  const found = new Set<string>();
  const look = (data: Buffer): void =>
    texts.filter((text) => data.includes(text)).forEach((text) => void found.add(text));
  const memory = await open(`/proc/${pid}/mem`, 'r').catch(() => null);
  if (memory === null) {
    return [];
  }
  try {
    for (const name of ['environ', 'cmdline']) {
      look(await readFile(`/proc/${pid}/${name}`).catch(() => Buffer.alloc(0)));
    }
    const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '');
    for (const [, from = '', to = ''] of maps.matchAll(/^([\da-f]+)-([\da-f]+) rw/gm)) {
      await lookThrough(memory, { from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) }, look);
    }
  } finally {
    await memory.close();
  }
  return [...found];
}

async function lookThrough(
  memory: FileHandle,
  { from, to }: { from: number; to: number },
  look: (data: Buffer) => void,
): Promise<void> {
  let end = Buffer.alloc(0);
  for (let position = from; position < to; position += PIECE) {
    const buffer = Buffer.alloc(Math.min(PIECE, to - position));
    // Parts of it may be gone, or cannot be read.
    const { bytesRead } = await memory
      .read(buffer, 0, buffer.length, position)
      .catch(() => ({ bytesRead: 0 }));
    const data = Buffer.concat([end, buffer.subarray(0, bytesRead)]);
    look(data);
    end = data.subarray(-256);
  }
}
