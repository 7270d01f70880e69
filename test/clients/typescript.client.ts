import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Client } from './client.js';
import { DONE } from './support/clients-model.js';

const run = promisify(execFile);
const TIMEOUT_MS = 120_000;
const root = fileURLToPath(new URL('../../', import.meta.url));
const FLAGS =
  '--ignoreConfig --strict --module nodenext --target es2023 --lib es2024,dom --types node --typeRoots';

export const typescript: Client = {
  name: 'typescript',
  what: 'the TypeScript client that npm run client:typescript writes, and its example',
  install: async (cache) => {
    await mkdir(cache.folder, { recursive: true });
    const folder = await mkdtemp(path.join(cache.folder, 'typescript-'));
    const client = path.join(folder, 'client');
    return {
      run: async (world, steps) => {
        const { key } = await world.settledUser();
        try {
          await steps.step(
            'it is generated from openapi.json and compiles',
            async () => {
              const { stdout } = await run(process.execPath, [
                path.join(root, 'scripts', 'typescript-client.mjs'),
                client,
              ]);
              return path.basename(stdout.trim());
            },
            TIMEOUT_MS,
          );
          await steps.step(
            'the example compiles against its types, in a project that npm has made',
            async () => {
              const modules = path.join(root, 'node_modules');
              await run('npm', ['init', '--yes'], { cwd: folder });
              await run('npm', ['pack', client], { cwd: folder });
              await run('npm', ['install', '--offline', './slipway-client-0.1.0.tgz'], { cwd: folder });
              await cp(
                path.join(folder, 'node_modules', 'slipway-client', 'example.mts'),
                path.join(folder, 'example.mts'),
              );
              const compiler = path.join(modules, 'typescript', 'bin', 'tsc');
              const args = [
                compiler,
                ...FLAGS.split(' '),
                path.join(modules, '@types'),
                '--noEmit',
                'example.mts',
              ];
              await run(process.execPath, args, { cwd: folder }).catch((error: { stdout?: string }) => {
                throw new Error(error.stdout ?? 'the compiler did not run', { cause: error });
              });
              return 'no error';
            },
            TIMEOUT_MS,
          );
          await steps.step('the example starts a conversation, follows and deletes it', async () => {
            const { stdout } = await run(process.execPath, ['example.mts', 'Make the check pass.'], {
              cwd: folder,
              env: { ...process.env, SLIPWAY_URL: world.url, SLIPWAY_KEY: key },
            });
            const lines = stdout.trim().split('\n');
            assert.equal(lines.at(-1), 'deleted');
            assert.ok(stdout.includes(DONE), 'the last message did not arrive');
            return `${lines.length - 1} events, then deleted`;
          });
        } finally {
          await rm(folder, { recursive: true, force: true, maxRetries: 10 });
        }
      },
    };
  },
};
