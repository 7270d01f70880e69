import { readFileSync } from 'node:fs';
import path from 'node:path';

const PACKAGES = path.join(import.meta.dirname, '../../packages');
const STATIC_IMPORT = /^(?:import|export) (?!type\b)(?:(.+?) from )?'([^']+)';$/gms;
const ONLY_TYPES = /^\{\s*(type \w+,?\s*)+\}$/;
const OWN_PACKAGE = /^@slipway\/([\w-]+)\/(.+)$/;

/** Packages of others that source files load by static imports, those of the files that they import included. */
export function loadedPackages(...files: string[]): string[] {
  const seen = new Set<string>();
  return [...new Set(files.flatMap((file) => follow(file, seen)))];
}

function follow(file: string, seen: Set<string>): string[] {
  if (seen.has(file)) {
    return [];
  }
  seen.add(file);
  return [...readFileSync(file, 'utf8').matchAll(STATIC_IMPORT)].flatMap(([, names = '', from = '']) => {
    if (ONLY_TYPES.test(names) || from.startsWith('node:')) {
      return [];
    }
    const source = sourceOf(file, from);
    return source === null ? [from] : follow(source.replace(/\.js$/, '.ts'), seen);
  });
}

function sourceOf(file: string, from: string): string | null {
  if (from.startsWith('.')) {
    return path.resolve(path.dirname(file), from);
  }
  const [, name, inside] = OWN_PACKAGE.exec(from) ?? [];
  return name !== undefined && inside !== undefined ? path.join(PACKAGES, name, 'src', inside) : null;
}
