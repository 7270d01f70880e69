// Copies what the agent server needs, and nothing else, into a folder: node scripts/agent-server-files.mjs FOLDER
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const ENTRY = 'dist/agent-server/main.js';
/** Static and dynamic imports of a literal: how our own compiled code names what it needs. */
const IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*)(['"])([^'"\n]+)\1/g;

const root = fileURLToPath(new URL('..', import.meta.url));
const [target] = process.argv.slice(2);
if (!target) {
  throw new Error('which folder?');
}

const files = new Set();
const packages = new Set();
addFile(path.join(root, ENTRY));
for (const file of files) {
  copy(file, path.join(target, path.relative(path.join(root, 'dist'), file)));
}
for (const folder of packages) {
  // A package inside another one's folder comes along with that.
  copy(folder, path.join(target, path.relative(root, folder)));
}
writeFileSync(path.join(target, 'package.json'), '{ "type": "module" }\n');
process.stdout.write(`${files.size} files, ${packages.size} packages\n`);

function addFile(file) {
  if (files.has(file)) {
    return;
  }
  files.add(file);
  for (const [, , name] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
    if (name.startsWith('.')) {
      addFile(path.resolve(path.dirname(file), name));
    } else if (!name.startsWith('node:')) {
      addPackage(packageName(name), path.dirname(file), true);
    }
  }
}

function addPackage(name, from, required) {
  const folder = find(name, from);
  if (folder === null) {
    if (required) {
      throw new Error(`${name} is not installed`);
    }
    return;
  }
  if (packages.has(folder)) {
    return;
  }
  const manifest = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
  packages.add(folder);
  Object.keys(manifest.dependencies ?? {}).forEach((dependency) => addPackage(dependency, folder, true));
  // Optional ones, and what a package expects of the one that uses it: as far as they were installed.
  const offered = { ...manifest.optionalDependencies, ...manifest.peerDependencies };
  Object.keys(offered).forEach((dependency) => addPackage(dependency, folder, false));
}

/** As Node.js looks for packages: in `node_modules` here, then further up. */
function find(name, from) {
  for (let folder = from; folder.startsWith(path.resolve(root)); folder = path.dirname(folder)) {
    const candidate = path.join(folder, 'node_modules', name);
    if (existsSync(path.join(candidate, 'package.json'))) {
      return candidate;
    }
  }
  return null;
}

function packageName(specifier) {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function copy(from, to) {
  mkdirSync(path.dirname(to), { recursive: true });
  cpSync(from, to, {
    recursive: true,
    // Maps, declarations and manuals are for people; packages inside are listed by themselves.
    filter: (file) =>
      !/(\.map|\.d\.[cm]?ts|readme\.md|changelog\.md)$/i.test(file) &&
      !file.slice(from.length).includes('/node_modules'),
  });
}
