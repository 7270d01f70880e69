// Writes the TypeScript client from openapi.json: npm run client:typescript.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '@hey-api/openapi-ts';
import { COMMAND_LINES } from './lib/command-lines.ts';

const [given, document] = COMMAND_LINES['scripts/typescript-client.mjs'].parse().processedArgs;
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const home = path.join(root, 'clients', 'typescript');
const folder = path.resolve(given ?? home);
const sources = path.join(folder, 'src');
const built = path.join(folder, 'dist');

mkdirSync(folder, { recursive: true });
for (const outdated of [sources, built]) {
  rmSync(outdated, { recursive: true, force: true });
}
if (folder !== home) {
  for (const name of ['package.json', 'README.md', 'example.mts']) {
    cpSync(path.join(home, name), path.join(folder, name));
  }
}
await createClient({
  input: path.resolve(document ?? path.join(root, 'openapi.json')),
  output: { path: sources, module: { extension: '.js' } },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
  logs: { level: 'silent' },
});

const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const flags = [
  '--ignoreConfig --strict --declaration --skipLibCheck --module nodenext --target es2022',
  '--lib es2024,dom,dom.iterable',
].flatMap((line) => line.split(' '));
const entries = ['index.ts', 'client/index.ts'].map((name) => path.join(sources, name));
const { status } = spawnSync(
  process.execPath,
  [compiler, ...flags, '--rootDir', sources, '--outDir', built, ...entries],
  { cwd: folder, stdio: 'inherit' },
);
if (status === 0) {
  process.stdout.write(`${path.relative(process.cwd(), folder)}: written from openapi.json\n`);
}
process.exitCode = status ?? 1;
