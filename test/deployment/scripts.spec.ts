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

describe('check:house', () => {
  /** Files that compare owners and are not named, of these. */
  const found = (sources: readonly string[]): unknown => {
    const program = `import ts from 'typescript';
      import { comparedOwners } from '${path.join(ROOT, 'scripts/lib/compared-owners.mjs')}';
      const files = ${JSON.stringify(sources)}.map((text, index) => ({
        name: 'v1/planted-' + index + '.service.ts',
        tree: ts.createSourceFile('planted.ts', text, ts.ScriptTarget.ES2023, true),
      }));
      const findings = comparedOwners(files, () => undefined).flatMap((text) => text.match(/planted-\\d+/) ?? []);
      console.log(JSON.stringify(findings.map((name) => Number(name.slice(8)))));`;
    return JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '-e', program], {
        cwd: ROOT,
        encoding: 'utf8',
      }),
    );
  };
  const PLANTED = [
    "query('SELECT * FROM t WHERE user_id = $1')",
    "query('SELECT * FROM t WHERE t.user_id=$1')",
    `query('SELECT * FROM t WHERE "user_id" = $1')`,
    "query('SELECT * FROM t WHERE user_id = ANY ($1::uuid[])')",
    "query('SELECT * FROM t WHERE user_id::text = $1')",
    "query('SELECT * FROM t WHERE user_id <> $1')",
    "query('SELECT * FROM t WHERE user_id != $1')",
    "query('SELECT * FROM t WHERE user_id IN ($1)')",
    "query('SELECT * FROM t WHERE user_id not in ($1)')",
    "query('SELECT * FROM t WHERE user_id IS NOT DISTINCT FROM $1')",
    "query('SELECT * FROM t WHERE $1 = t.user_id')",
    "query('SELECT * FROM t WHERE $1 = ANY (t.user_id)')",
    "query('SELECT * FROM t WHERE (id, user_id) = ($1, $2)')",
    "query('SELECT * FROM t JOIN o USING (id, user_id)')",
    'query(`SELECT * FROM ${table} WHERE ${table}.user_id\n = $1`)',
    'query(`SELECT * FROM ${table} WHERE ${parameter} = ${table}.user_id`)',
    "rows.createQueryBuilder('t').where('t.userId = :userId', { id })",
    "rows.createQueryBuilder('t').where({ userId })",
    "rows.createQueryBuilder('t').where({ id }).andWhere({ userId: In(ids) })",
    "rows.createQueryBuilder('t').where(new Brackets((all) => all.orWhere({ userId })))",
    'rows.findOneBy({ id, userId })',
    "rows.findOneByOrFail({ id, 'userId': caller })",
    'rows.findAndCountBy([{ id }, { userId }])',
    'rows.find({ where: { id, userId } })',
    'rows.find({ where: { id, ...(isAdmin ? {} : { userId }) } })',
    'const where = isAdmin ? {} : { userId }; rows.find({ where })',
    'manager.existsBy(Row, { id, userId })',
    'manager.update(Row, { id, userId }, { name })',
    'rows.update({ id, userId }, { name })',
    'rows.delete({ id, userId })',
  ];

  it('finds each way to compare owners beside what auth/access.ts decides', () => {
    expect(found(PLANTED)).toEqual(PLANTED.map((_, index) => index));
  });

  it('finds none where a row is made, given away or shown', () => {
    const others = [
      "query('INSERT INTO t (id, user_id) VALUES ($1, $2)')",
      "query('SELECT id, user_id FROM t')",
      "query('SELECT * FROM t WHERE id = $1 ORDER BY user_id')",
      "query('SELECT * FROM t WHERE owner_user_id_hash = $1')",
      'rows.insert({ id, userId })',
      'rows.update({ id }, { userId })',
      'manager.update(Row, { id }, { userId })',
      'rows.find({ where: { id }, select: { userId: true } })',
      'known.find(({ userId }) => userId === id)',
      'const row = { id, userId }',
    ];
    expect(found(others)).toEqual([]);
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
