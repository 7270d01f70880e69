import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import request from 'supertest';
import { createTestApp } from '../../../test/support/create-test-app.js';
import { until } from '../../../test/support/until.js';
import { databaseFailure } from '@slipway/database/database-failure.js';
import { runMigrations } from '../../../src/database/data-source-options.js';
import { connectionUrl, type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.js';
import { isPostmasterOf, readPostmasterPid } from './process-identity.js';

const MIB = 2 ** 20;
/** Of the server in these tests, whose segments of the write-ahead log have 1 MiB. */
const RESERVE = { bytes: 16 * MIB, fullBytes: MIB, patienceMs: 500 };
const DISK = '192m';

const FAST = {
  initdbArgs: ['--no-sync', '--wal-segsize=1'],
  settings: { shared_buffers: '16MB', min_wal_size: '2MB' },
};

/** The data folder of a finished first start, of which each test has a copy. */
let template: string;
let base: string;
let database: EmbeddedPostgres;
let reports: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[];

const messages = (): string[] => reports.map(({ message }) => message);

beforeAll(async () => {
  template = makeBase();
  await (await startEmbeddedPostgres({ ...FAST, dataDir: path.join(template, 'data') })).stop();
});

afterAll(() => rm(template, { recursive: true, force: true, maxRetries: 10 }));

beforeEach(() => {
  base = makeBase();
  reports = [];
});

function makeBase(): string {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'slipway-supervised-')));
  chmodSync(folder, 0o755);
  return folder;
}

/** Owners and modes stay as they are. */
async function start(dataDir: string): Promise<void> {
  if (!existsSync(dataDir)) {
    execFileSync('cp', ['-a', path.join(template, 'data'), dataDir]);
  }
  database = await startEmbeddedPostgres({ ...FAST, dataDir, reserve: RESERVE });
  database.supervise((level, message, fields) => reports.push({ level, message, fields }));
}

async function query(sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: connectionUrl(database.connection) });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows;
  } finally {
    await client.end();
  }
}

/** @throws Error without one: a signal to process 0 would reach the tests themselves */
async function postmasterOf(cluster: string): Promise<number> {
  const running = await readPostmasterPid(cluster);
  if (running === null) {
    throw new Error('the embedded server does not run');
  }
  return running.pid;
}

describe('an embedded server that dies', () => {
  afterEach(async () => {
    await database.stop();
    await rm(base, { recursive: true, force: true, maxRetries: 10 });
  });

  it('comes back by itself, with everything that was acknowledged', async () => {
    const dataDir = path.join(base, 'data');
    await start(dataDir);
    const cluster = realpathSync(path.join(dataDir, 'postgres'));
    await query('create table numbers (n int)');
    for (let n = 1; n <= 2; n += 1) {
      await query(`insert into numbers values (${n})`);
      const pid = await postmasterOf(cluster);
      process.kill(pid, 'SIGKILL');
      await until(() => !isPostmasterOf(cluster, pid));
      await until(() => messages().filter((message) => message === 'embedded database is back').length === n);
    }

    expect(await query('select count(*)::int as count from numbers')).toEqual([{ count: 2 }]);
    expect(messages()).toEqual(
      expect.arrayContaining([
        'disk reserve of embedded database made',
        'connection to embedded database lost',
        'embedded database is back',
      ]),
    );
    const pid = await postmasterOf(cluster);
    await database.stop();
    expect(isPostmasterOf(cluster, pid)).toBe(false);
  });
});

/** Only root can make a disk of a known size. */
const describeAsRoot = process.getuid?.() === 0 && process.platform === 'linux' ? describe : describe.skip;

describeAsRoot('a full disk (skipped without root, who can mount one of a known size)', () => {
  let disk: string;
  let filler: string;

  beforeEach(async () => {
    disk = path.join(base, 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=755`, 'slipway-test', disk]);
    filler = path.join(disk, 'filler');
    await start(path.join(disk, 'data'));
    await until(() => existsSync(reserveFile()));
  });

  afterEach(async () => {
    await rm(filler, { force: true });
    await database.stop();
    // Lazily: a process that has just ended may still hold it for a moment.
    execFileSync('umount', ['--lazy', disk]);
    await rm(base, { recursive: true, force: true, maxRetries: 10 });
  });

  const reserveFile = (): string => `${realpathSync(path.join(disk, 'data/postgres'))}-reserve`;
  const hiddenReserve = (): string => path.join(disk, 'hidden-reserve');

  /**
   * As a sandbox does whose tool writes and writes: to the last byte. The reserve takes its room under another name, so
   * that nothing releases it before the test has seen what a full disk does, however slow the machine is. All of this
   * happens between two looks of the supervisor, which would make another reserve.
   */
  function fill(): void {
    renameSync(reserveFile(), hiddenReserve());
    const descriptor = openSync(filler, 'a');
    try {
      for (const chunk of [Buffer.alloc(MIB), Buffer.alloc(4096)]) {
        writeUntilRefused(descriptor, chunk);
      }
    } finally {
      closeSync(descriptor);
    }
  }

  function letReserveBeReleased(): void {
    renameSync(hiddenReserve(), reserveFile());
  }

  it('lets the database write again when whatever filled it has stopped', async () => {
    await query('create table kept (id int, text text)');
    fill();
    const failures = new Set<string | null>();
    let acknowledged = 0;
    for (let id = 0; id < 4_000 && failures.size === 0; id += 1) {
      try {
        await query(
          `insert into kept select ${id}, string_agg(md5(random()::text), '') from generate_series(1, 100)`,
        );
        acknowledged += 1;
      } catch (error) {
        failures.add(databaseFailure(error));
      }
    }
    expect([...failures]).toEqual(['disk_full']);

    letReserveBeReleased();
    await until(() => messages().includes('disk of embedded database is full, its reserve is released'));
    await until(async () => await succeeds(`insert into kept values (-1, 'afterwards')`));

    const [row] = await query('select count(*)::int as count from kept');
    expect(row).toEqual({ count: acknowledged + 1 });
    await rm(filler);
    await until(async () => existsSync(reserveFile()) && (await stat(reserveFile())).size === RESERVE.bytes);
  });

  it('comes back by itself when there was no room for its log', async () => {
    await query('create table kept (id int)');
    await query('insert into kept values (1)');
    // Otherwise a checkpoint may free old segments as fast as this test writes new ones.
    await query(`alter system set wal_keep_size = '1GB'`);
    await query('select pg_reload_conf()');
    fill();
    // Nothing but the log grows, and a server that cannot write it has to give up.
    const died = (): boolean => messages().includes('connection to embedded database lost');
    while (!died() && (await succeeds(`select pg_logical_emit_message(true, 'x', repeat('x', 200000))`))) {
      expect(messages()).not.toContain('failed to supervise embedded database');
    }
    await until(died);

    letReserveBeReleased();
    await until(async () => await succeeds('insert into kept values (2)'));

    expect(await query('select id from kept order by id')).toEqual([{ id: 1 }, { id: 2 }]);
    expect(messages()).toContain('disk of embedded database is full, its reserve is released');
    await until(() => messages().includes('embedded database is back'));
    expect(await succeeds('select 1')).toBe(true);
  });

  it('starts again on a disk that filled up while nothing ran', async () => {
    await database.stop();
    fill();
    letReserveBeReleased();

    await start(path.join(disk, 'data'));

    expect(await succeeds('create table kept (id int)')).toBe(true);
  });

  it('is told to users as what it is, while they still read', async () => {
    const url = connectionUrl(database.connection);
    await runMigrations(url);
    const app = await createTestApp({}, url);
    try {
      await request(app.url).get('/api/settings').set(app.user.headers);
      await request(app.url).post('/api/settings').set(app.user.headers).send({ language: 'en' }).expect(200);
      fill();
      let refused: request.Response | null = null;
      for (let turn = 0; turn < 2_000 && refused === null; turn += 1) {
        const response = await request(app.url)
          .post('/api/secrets')
          .set(app.user.headers)
          .send({ name: `S${turn}`, value: 'x'.repeat(30_000) });
        refused = response.status < 500 ? null : response;
      }

      expect(refused?.status).toBe(503);
      expect(refused?.body).toMatchObject({
        code: 'storage_full',
        detail: expect.stringContaining('The disk of the database is full'),
      });
      letReserveBeReleased();
      await until(
        async () => (await request(app.url).get('/api/settings').set(app.user.headers)).status === 200,
      );
    } finally {
      await app.close();
    }
  });

  async function succeeds(sql: string): Promise<boolean> {
    try {
      await query(sql);
      return true;
    } catch {
      return false;
    }
  }
});

function writeUntilRefused(descriptor: number, chunk: Buffer): void {
  for (;;) {
    try {
      writeSync(descriptor, chunk);
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' });
      return;
    }
  }
}
