import { lstat, mkdir, open, readdir, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { errorCode } from '../../common/errors/error-message.js';
import { ToolInputError } from './tool.js';

const LIST_DEPTH = 2;
const MAX_ENTRIES = 1_000;
const SKIPPED_FOLDERS = new Set(['node_modules', '__pycache__']);

/** Lists a folder two levels deep, one path per line, without hidden entries and the contents of package folders. */
export async function listFolder(folder: string): Promise<string> {
  const lines: string[] = [];
  await list(folder, '', LIST_DEPTH, lines);
  const shown = lines.slice(0, MAX_ENTRIES);
  const missing = lines.length > MAX_ENTRIES ? ['[... more entries left out ...]'] : [];
  return [...shown, ...missing].join('\n');
}

async function list(folder: string, prefix: string, depth: number, lines: string[]): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  const visible = entries
    .filter(({ name }) => !name.startsWith('.'))
    .toSorted((left, right) => (left.name < right.name ? -1 : 1));
  for (const entry of visible) {
    if (lines.length > MAX_ENTRIES) {
      return;
    }
    lines.push(`${prefix}${entry.name}${entry.isDirectory() ? '/' : ''}`);
    if (entry.isDirectory() && depth > 1 && !SKIPPED_FOLDERS.has(entry.name)) {
      await list(join(folder, entry.name), `${prefix}${entry.name}/`, depth - 1, lines);
    }
  }
}

/** Larger files are for the terminal. */
const MAX_TEXT_FILE_BYTES = 5 * 1024 * 1024;

/**
 * The content of a text file; null if it does not exist.
 *
 * @throws ToolInputError when it is not a regular file, binary or too large
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
    if (errorCode(error) === 'ENOENT') {
      return null;
    }
    throw error;
  }
}

/**
 * Resolves a path in the workspace, links included; relative paths start at the workspace. The file need not exist,
 * but whatever exists of the path must be inside.
 *
 * @throws ToolInputError when it leads out of the workspace
 */
export async function workspacePath(workspace: string, path: string): Promise<string> {
  const root = await realpath(workspace);
  const absolute = isAbsolute(path) ? resolve(path) : resolve(workspace, path);
  const real = await realPathOf(absolute);
  if (real === null || !isInside(root, real)) {
    throw new ToolInputError(`${path} is not inside the workspace ${workspace}.`);
  }
  return real;
}

/** null for a dangling link: writing to it would create a file wherever it points. */
async function realPathOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') {
      throw error;
    }
  }
  if (await isDanglingLink(path)) {
    return null;
  }
  const parent = dirname(path);
  if (parent === path) {
    return null;
  }
  const realParent = await realPathOf(parent);
  return realParent === null ? null : join(realParent, basename(path));
}

async function isDanglingLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch {
    return false;
  }
}

function isInside(root: string, path: string): boolean {
  const below = relative(root, path);
  return below === '' || (below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below));
}
