import { expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const STATIC_IMPORT = /^import (?!type\b)(?:(.+?) from )?'([^']+)';$/gms;
const ONLY_TYPES = /^\{\s*(type \w+,?\s*)+\}$/;

/** Packages that a source file loads by static imports, its own imports included. */
function loadedPackages(file: string, seen = new Set<string>()): string[] {
  if (seen.has(file)) {
    return [];
  }
  seen.add(file);
  return [...readFileSync(file, 'utf8').matchAll(STATIC_IMPORT)].flatMap(([, names = '', from = '']) => {
    if (ONLY_TYPES.test(names) || from.startsWith('node:')) {
      return [];
    }
    return from.startsWith('.')
      ? loadedPackages(path.resolve(path.dirname(file), from.replace(/\.js$/, '.ts')), seen)
      : [from];
  });
}

it('loads neither Express, zod, ws nor the AI SDK before it listens', () => {
  expect(loadedPackages(path.join(import.meta.dirname, 'main.ts'))).toEqual(['p-retry']);
});

it('loads them with the routes and with the engine', () => {
  expect(loadedPackages(path.join(import.meta.dirname, 'http/app.ts'))).toEqual(
    expect.arrayContaining(['express', 'ws', 'zod']),
  );
  expect(loadedPackages(path.join(import.meta.dirname, 'engine/native/native.engine.ts'))).toContain('ai');
});
