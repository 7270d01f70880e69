import { setImmediate } from 'node:timers/promises';

/** Takes a few milliseconds to pack. */
const PIECE_BYTES = 128 * 1024;

export interface ZipEntry {
  name: string;
  text: string;
}

/** Packs entries as they arrive, so an archive needs only the memory of its largest entry. */
export async function* zip(
  entries: AsyncIterable<ZipEntry> | Iterable<ZipEntry>,
): AsyncGenerator<Uint8Array> {
  const { Zip, ZipDeflate } = await import('fflate');
  let chunks: Uint8Array[] = [];
  const archive = new Zip((error, chunk) => {
    if (error) {
      throw error;
    }
    chunks.push(chunk);
  });
  const takeChunks = (): Uint8Array[] => {
    const taken = chunks;
    chunks = [];
    return taken;
  };
  for await (const { name, text } of entries) {
    const file = new ZipDeflate(name);
    archive.add(file);
    const bytes = Buffer.from(text);
    for (let begin = 0; begin < bytes.length; begin += PIECE_BYTES) {
      const end = Math.min(begin + PIECE_BYTES, bytes.length);
      file.push(bytes.subarray(begin, end), end === bytes.length);
      yield* takeChunks();
      if (end < bytes.length) {
        // Well-compressed data may leave nothing to wait for.
        await setImmediate();
      }
    }
  }
  archive.end();
  yield* takeChunks();
}
