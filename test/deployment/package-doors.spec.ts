import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { useFolder } from '../support/use-folder.js';

const ROOT = path.resolve(import.meta.dirname, '../..');
const IMPORTED = /^\s*(?:import|export|\}).*?\bfrom '([^'.][^']*)'|\bimport\(?\s*'([^'.][^']*)'/gm;
const NEST = ['@nestjs/common', '@nestjs/core', '@nestjs/swagger'];

const manifest = (folder: string): Record<'dependencies' | 'devDependencies', Record<string, string>> =>
  JSON.parse(readFileSync(path.join(ROOT, folder, 'package.json'), 'utf8'));
const dependenciesOf = (folder: string): string[] => Object.keys(manifest(folder).dependencies);
const packages = globSync('packages/*', { cwd: ROOT }).map((folder) => path.basename(folder));
/** It knows the service by its public API, and no package at all. */
const withDoors = packages.filter((name) => name !== 'console').toSorted();

/** The packages that the sources of a folder import, tests apart. */
function importedBy(folder: string): string[] {
  const names = globSync(`${folder}/src/**/*.{ts,tsx}`, { cwd: ROOT })
    .filter((file) => !/\.(spec|contract|harness)\.ts$/.test(file))
    .flatMap((file) => [...readFileSync(path.join(ROOT, file), 'utf8').matchAll(IMPORTED)])
    .map(([, from, loaded]) => from ?? loaded ?? '')
    .map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
    .filter((name) => !name.startsWith('node:') && !builtinModules.includes(name));
  return [...new Set(names)].toSorted();
}

describe('package.json', () => {
  // Packages are hoisted, so that an import which it does not name works until another package no longer brings it.
  it.each(packages)('of %s names what its sources import, and no more', (name) => {
    expect(importedBy(`packages/${name}`)).toEqual(dependenciesOf(`packages/${name}`).toSorted());
  });

  it.each(packages)('of %s is there when an image installs what packages need', (name) => {
    expect(readFileSync(path.join(ROOT, 'Dockerfile'), 'utf8')).toContain(
      `\nCOPY packages/${name}/package.json packages/${name}/\n`,
    );
  });

  // npm leaves what is a devDependency of the root out of the SBOM and out of what is audited, with all that it brings.
  it('of the service has nothing that a package needs among its devDependencies', () => {
    const needed = packages.flatMap((name) => dependenciesOf(`packages/${name}`));

    expect(Object.keys(manifest('.').devDependencies).filter((name) => needed.includes(name))).toEqual([]);
  });

  it('makes no circle of packages', () => {
    let left = packages;
    const below = (name: string): string[] =>
      dependenciesOf(`packages/${name}`).filter((each) => left.some((other) => each === `@slipway/${other}`));
    while (left.some((name) => below(name).length === 0)) {
      left = left.filter((name) => below(name).length > 0);
    }

    expect(left).toEqual([]);
  });

  it('of the service names what its sources import', () => {
    expect(importedBy('.')).toEqual(
      importedBy('.').filter((imported) => dependenciesOf('.').includes(imported)),
    );
  });
});

describe('the linter', () => {
  const folder = useFolder();

  // It takes a pattern that it cannot read for one that nothing matches.
  it('refuses imports of all packages but those in package.json, of the service, and past doors', () => {
    const behind = ['../../../src/main.js', '../../common/src/clock.js', '../../../test/support/until.js'];
    const tried = [...behind, ...packages.map((name) => `@slipway/${name}/a.js`), ...NEST];
    cpSync(path.join(ROOT, '.oxlintrc.json'), path.join(folder.path, '.oxlintrc.json'));
    for (const name of withDoors) {
      mkdirSync(path.join(folder.path, 'packages', name, 'src'), { recursive: true });
      writeFileSync(
        path.join(folder.path, 'packages', name, 'src/a.ts'),
        tried.map((target, index) => `export { a as a${index} } from '${target}';\n`).join(''),
      );
    }

    const { stdout } = spawnSync(path.join(ROOT, 'node_modules/.bin/oxlint'), ['--format', 'unix', '.'], {
      cwd: folder.path,
      encoding: 'utf8',
    });

    const refused = [...stdout.matchAll(/^packages\/([\w-]+)\/src\/a\.ts:(\d+):.*no-restricted-imports/gm)];
    for (const name of withDoors) {
      const allowed = dependenciesOf(`packages/${name}`).filter((each) => /^@(slipway|nestjs)\//.test(each));
      expect([
        name,
        refused.flatMap(([, where, line]) => (where === name ? tried[Number(line) - 1] : [])),
      ]).toEqual([
        name,
        tried.filter((target) => !allowed.some((each) => `${target}/`.startsWith(`${each}/`))),
      ]);
    }
  });
});
