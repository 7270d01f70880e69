import { mkdir, open, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describeFailure } from '../failure.js';
import { ToolInputError } from './tool.js';

/** Larger files are for the terminal. */
export const MAX_TEXT_FILE_BYTES = 5 * 1024 * 1024;

/**
 * Content of a text file, null when there is none.
 *
 * @throws ToolInputError when it is no regular file, binary or too large
 */
export async function readTextFile(path: string): Promise<string | null> {
  const bytes = await readBytes(path);
  if (bytes === null) {
    return null;
  }
  if (bytes.includes(0)) {
    throw new ToolInputError(`${path} is a binary file.`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolInputError(`${path} is not UTF-8 text; use the terminal for it.`);
  }
}

/** Writes a file and the folders above it. */
export async function writeTextFile(path: string, content: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content);
}

async function readBytes(path: string): Promise<Buffer | null> {
  try {
    const file = await open(path, 'r');
    try {
      const { size, isFile } = await file.stat().then((stat) => ({ size: stat.size, isFile: stat.isFile() }));
      if (!isFile) {
        throw new ToolInputError(`${path} is not a file.`);
      }
      if (size > MAX_TEXT_FILE_BYTES) {
        throw new ToolInputError(
          `${path} has ${size} bytes, more than the ${MAX_TEXT_FILE_BYTES} that this tool reads; use the terminal.`,
        );
      }
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    if (describeFailure(error).code === 'ENOENT') {
      return null;
    }
    throw error;
  }
}
