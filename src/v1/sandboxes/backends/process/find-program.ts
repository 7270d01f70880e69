import { access, constants } from 'node:fs/promises';
import path from 'node:path';

/** Where programs of the system lie, beside what PATH says. */
const USUAL = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'];

/** The absolute path of a program; null when it is not installed. */
export async function findProgram(name: string, searchPath: string | undefined): Promise<string | null> {
  const folders = [
    ...(searchPath ?? '').split(path.delimiter).filter((folder) => path.isAbsolute(folder)),
    ...USUAL,
  ];
  for (const folder of folders) {
    const file = path.join(folder, name);
    const runs = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (runs) {
      return file;
    }
  }
  return null;
}
