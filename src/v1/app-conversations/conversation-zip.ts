import { Zip, ZipDeflate } from 'fflate';

/** A file of an archive. */
export interface ZipEntry {
  name: string;
  text: string;
}

/** Packs entries as they come, so that an archive of any size takes the memory of its largest entry. */
export async function* zipEntries(entries: AsyncIterable<ZipEntry>): AsyncGenerator<Uint8Array> {
  let made: Uint8Array[] = [];
  const zip = new Zip((error, chunk) => {
    if (error) {
      throw error;
    }
    made.push(chunk);
  });
  const take = (): Uint8Array[] => {
    const chunks = made;
    made = [];
    return chunks;
  };
  for await (const { name, text } of entries) {
    const file = new ZipDeflate(name);
    zip.add(file);
    file.push(Buffer.from(text), true);
    yield* take();
  }
  zip.end();
  yield* take();
}
