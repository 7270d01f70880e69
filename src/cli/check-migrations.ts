import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DataSource } from 'typeorm';
import { dataSourceOptions, runMigrations } from '../database/data-source-options.js';
import { connectionUrl, startEmbeddedPostgres } from '@slipway/embedded-postgres/embedded-postgres.js';
import { pendingSchemaChanges } from '@slipway/database/migration-runner.js';
import { failureText } from './command-output.js';

/** `npm run migrations:check`: fails when an empty database, built by migrations, does not fit the entities. */
// TypeORM asks several things of one connection at once, which pg deprecates.
process.noDeprecation = true;
const folder = await mkdtemp(path.join(tmpdir(), 'slipway-migrations-'));
try {
  // Under root the server runs as another user, who needs access to the folder.
  await chmod(folder, 0o711);
  const changes = await changesInAnEmptyDatabase(path.join(folder, 'data'));
  if (changes.length > 0) {
    process.stderr.write(
      `The entities and the migrations differ; a migration is missing that does this:\n\n${changes.join(';\n')};\n`,
    );
    process.exitCode = 1;
  } else {
    process.stdout.write('The migrations make exactly the schema that the entities describe.\n');
  }
} catch (error) {
  process.stderr.write(`slipway check-migrations: ${failureText(error)}\n`);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function changesInAnEmptyDatabase(dataDir: string): Promise<string[]> {
  const server = await startEmbeddedPostgres({ dataDir, initdbArgs: ['--no-sync', '--no-instructions'] });
  try {
    const url = connectionUrl(server.connection);
    await runMigrations(url);
    const dataSource = new DataSource({ ...dataSourceOptions(url, 2), entities: await everyEntity() });
    await dataSource.initialize();
    try {
      return await pendingSchemaChanges(dataSource);
    } finally {
      await dataSource.destroy();
    }
  } finally {
    await server.stop();
  }
}

/** Finds entities by file name, so that one which no module registers is noticed too. */
async function everyEntity(): Promise<string[]> {
  const root = path.join(import.meta.dirname, '..');
  const files = (await readdir(root, { recursive: true })).filter((file) =>
    /\.(entity|repository)\.ts$/.test(file),
  );
  if (files.length === 0) {
    throw new Error(`there are no entities in ${root}`);
  }
  return files.map((file) => path.join(root, file)).toSorted();
}
