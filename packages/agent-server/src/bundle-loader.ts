import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Script } from 'node:vm';
import { errorCode } from '@slipway/common/errors/error-message.js';

/** A file of the bundle has its code cache beside it, under its own name and this ending. */
export const CODE_CACHE = '.cache';

/**
 * Loads a file of the bundle with the files that it requires, each with the code cache that the build recorded: what V8
 * had compiled by the end of a conversation (docs/adr/0054). A cache that another version of V8 wrote, or that is missing,
 * only costs the time to compile. Files are in ASCII, and are CommonJS modules.
 *
 * @param entry absolute path
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
    // Half of a module is worse than none: whoever asks again gets the error again, or the whole.
    loaded.delete(file);
    throw error;
  }
  return module.exports;
}

function compile(file: string): ModuleFunction {
  // Latin-1: one byte per character, and nothing to decode.
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
