import { type FileHandle, open, readdir, readFile } from 'node:fs/promises';

/** A piece of memory is read at a time; a text may run over the border of two. */
const PIECE = 8 * 1024 * 1024;
const LONGEST_TEXT = 256;
const PAGE = 4_096;
/** Bytes of a page in `pagemap`, whose last says whether it is in memory or swapped out. */
const ENTRY = 8;
const IS_THERE = 0xc0;

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

/**
 * Which of the texts are in what the processes can write to, or in their environments and arguments.
 *
 * @throws Error where no memory can be read, and so nothing would be found
 */
export async function foundInMemory(pids: readonly number[], texts: readonly string[]): Promise<string[]> {
  const left = new Map(texts.map((text) => [text, Buffer.from(text)]));
  const buffer = Buffer.alloc(LONGEST_TEXT + PIECE);
  const look = (data: Buffer): void =>
    left.forEach((bytes, text) => void (data.includes(bytes) && left.delete(text)));
  let read = 0;
  for (const pid of pids) {
    read += await lookAt(pid, buffer, look);
  }
  if (read === 0) {
    throw new Error('no memory can be read');
  }
  return texts.filter((text) => !left.has(text));
}

/** Returns how many bytes of its memory were read. */
async function lookAt(pid: number, buffer: Buffer, look: (data: Buffer) => void): Promise<number> {
  const opened = ['mem', 'pagemap'].map((name) => open(`/proc/${pid}/${name}`, 'r').catch(() => null));
  const [memory = null, pages = null] = await Promise.all(opened);
  let read = 0;
  try {
    for (const name of ['environ', 'cmdline']) {
      look(await readFile(`/proc/${pid}/${name}`).catch(() => Buffer.alloc(0)));
    }
    const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '');
    for (const [, from = '', to = ''] of maps.matchAll(/^([\da-f]+)-([\da-f]+) rw/gm)) {
      const whole = { from: Number.parseInt(from, 16), to: Number.parseInt(to, 16) };
      for (const part of pages === null ? [] : await usedParts(pages, whole)) {
        read += memory === null ? 0 : await lookThrough(memory, part, { buffer, look });
      }
    }
  } finally {
    await Promise.all([memory?.close(), pages?.close()]);
  }
  return read;
}

interface Part {
  from: number;
  to: number;
}

/** Most of what a process may write to it has never touched: stacks of threads, room for its heap. */
async function usedParts(pages: FileHandle, { from, to }: Part): Promise<Part[]> {
  const entries = Buffer.alloc(((to - from) / PAGE) * ENTRY);
  const read = pages.read(entries, 0, entries.length, (from / PAGE) * ENTRY);
  const { bytesRead } = await read.catch(() => ({ bytesRead: 0 }));
  const parts: Part[] = [];
  for (let at = 0; at < bytesRead; at += ENTRY) {
    if (((entries[at + ENTRY - 1] ?? 0) & IS_THERE) !== 0) {
      const page = from + (at / ENTRY) * PAGE;
      const last = parts.at(-1);
      if (last?.to === page) {
        last.to += PAGE;
      } else {
        parts.push({ from: page, to: page + PAGE });
      }
    }
  }
  return parts;
}

async function lookThrough(
  memory: FileHandle,
  { from, to }: Part,
  { buffer, look }: { buffer: Buffer; look: (data: Buffer) => void },
): Promise<number> {
  let kept = 0;
  let read = 0;
  for (let position = from; position < to; position += PIECE) {
    const wanted = Math.min(PIECE, to - position);
    // Parts of it may be gone, or cannot be read.
    const { bytesRead } = await memory.read(buffer, kept, wanted, position).catch(() => ({ bytesRead: 0 }));
    const data = buffer.subarray(0, kept + bytesRead);
    look(data);
    read += bytesRead;
    kept = data.copy(buffer, 0, Math.max(0, data.length - LONGEST_TEXT));
  }
  return read;
}
