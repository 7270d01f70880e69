import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../..');
/** Of our own; what is below `dist` is there after a build. */
const RELATIVE_IMPORT = /(?:from|import|import\()\s*'(\.[^']+)'/g;

describe('scripts', () => {
  const scripts = globSync('scripts/**/*.mjs', { cwd: ROOT });

  it.each(scripts)('%s imports files that exist', (script) => {
    const imported = [...readFileSync(path.join(ROOT, script), 'utf8').matchAll(RELATIVE_IMPORT)]
      .map(([, name = '']) => path.join(path.dirname(script), name))
      .filter((file) => !file.startsWith('dist/'));

    expect(imported.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([]);
  });

  it('are the ones that package.json names', () => {
    const { scripts: commands } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
    const named = Object.values<string>(commands).flatMap(
      (command) => command.match(/scripts\/[\w./-]+\.mjs/g) ?? [],
    );

    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([]);
  });
});
