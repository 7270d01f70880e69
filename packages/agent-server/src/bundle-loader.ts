import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Script } from 'node:vm';
import { errorCode } from '@slipway/common/errors/error-message.js';

/** A file of the bundle has its code cache beside it, under its own name and this ending. */
export const CODE_CACHE = '.cache';

/**
 * Loads a file of the bundle and what it requires, each with its recorded code cache (docs/adr/0048). A cache that
 * is missing, or from another version of V8, only costs the time to compile. Files are ASCII CommonJS modules.
 */
export function loadBundle(entry: string): unknown {
  return load(path.normalize(entry), new Map());
}

interface LoadedModule {
  exports: unknown;
}

type ModuleFunction = (
  exports: unknown,
  require: (id: string) => unknown,
  module: LoadedModule,
  filename: string,
  dirname: string,
) => void;

function load(file: string, loaded: Map<string, LoadedModule>): unknown {
  const known = loaded.get(file);
  if (known !== undefined) {
    return known.exports;
  }
  const module: LoadedModule = { exports: {} };
  loaded.set(file, module);
  const folder = path.dirname(file);
  const fromNode = createRequire(file);
  const require = (id: string): unknown =>
    id.startsWith('.') ? load(path.join(folder, id), loaded) : fromNode(id);
  try {
    compile(file)(module.exports, require, module, file, folder);
  } catch (error) {
    // A half-loaded module must not stay: the next caller gets the error again, or the whole module.
    loaded.delete(file);
    throw error;
  }
  return module.exports;
}

function compile(file: string): ModuleFunction {
  // Latin-1 needs no decoding, and the files are ASCII.
  const source = readFileSync(file, 'latin1');
  const cachedData = readCache(`${file}${CODE_CACHE}`);
  const script = new Script(`(function (exports, require, module, __filename, __dirname) {${source}\n})`, {
    filename: file,
    ...(cachedData !== null && { cachedData }),
  });
  return script.runInThisContext();
}

function readCache(file: string): Buffer | null {
  try {
    return readFileSync(file);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') {
      return null;
    }
    throw error;
  }
}
