import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { useFolder } from '../support/use-folder.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const RELATIVE_IMPORT = /(?:from|import|import\()\s*'(\.[^']+)'/g;

describe('scripts', () => {
  const scripts = globSync('scripts/**/*.mjs', { cwd: ROOT });

  it.each(scripts)('%s imports files that exist', (script) => {
    const imported = [...readFileSync(path.join(ROOT, script), 'utf8').matchAll(RELATIVE_IMPORT)].map(
      ([, name = '']) => path.join(path.dirname(script), name),
    );

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

describe('the scripts of CI', () => {
  // With pipefail the writer's broken pipe fails the script, if it writes once more: by chance.
  it.each(globSync('.ci/*', { cwd: ROOT }))('%s pipes into nothing that stops reading early', (script) => {
    const pipes = readFileSync(path.join(ROOT, script), 'utf8').match(
      /^.*[^|]\|\s*(?:grep -\w*[qlm]|head\b).*$/gm,
    );

    expect((pipes ?? []).filter((line) => !line.includes('|| true; } |'))).toEqual([]);
  });
});

describe('a build', () => {
  const LEFTOVERS = path.join(ROOT, 'scripts/lib/leftovers.mjs');
  const folder = useFolder();

  const write = (name: string, at = '2026-03-01T00:00:00Z'): void => {
    const file = path.join(folder.path, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, '');
    utimesSync(file, new Date(at), new Date(at));
  };
  const files = (below: string): string[] =>
    globSync('**/*.*', { cwd: path.join(folder.path, below) }).toSorted();
  const run = (call: string): void => {
    const program = `import { removeOlder } from '${LEFTOVERS}'; ${call}`;
    execFileSync(process.execPath, ['--input-type=module', '-e', program], { cwd: folder.path });
  };

  it('removes chunks of earlier builds, apart from those that a running service may still load', () => {
    write('service/chunks/docs-first.js', '2026-01-01T00:00:00Z');
    write('service/chunks/docs-second.js', '2026-02-01T00:00:01Z');
    write('service/chunks/docs-third.js');
    write('service/main.js');

    run(`removeOlder('service', new Date('2026-02-01T00:00:00Z'))`);

    expect(files('service')).toEqual(['chunks/docs-second.js', 'chunks/docs-third.js', 'main.js']);
  });
});
