import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { fastFolder } from '../../../test/support/fast-folder.js';
import { until } from '../../../test/support/until.js';
import { connectionUrl, startEmbeddedPostgres, type EmbeddedPostgres } from './embedded-postgres.js';
import { connectToPostmaster } from './postmaster.js';
import { readPostmasterPid, processIdentity } from './process-identity.js';

const FAST = {
  initdbArgs: ['--no-sync', '--wal-segsize=1'],
  settings: { shared_buffers: '16MB', min_wal_size: '2MB' },
};
const asRoot = process.getuid?.() === 0;

/** The data folder of a finished first start: most tests begin with a copy of it. */
let initialised: string;
let base: string;
let dataDir: string;
let systemFolder: string;
let notices: string[];
let started: EmbeddedPostgres[];
let helpers: ChildProcess[];

async function makeBase(): Promise<string> {
  const folder = realpathSync(mkdtempSync(path.join(await fastFolder(), 'slipway-pg-')));
  chmodSync(folder, 0o755);
  return folder;
}

beforeAll(async () => {
  initialised = path.join(await makeBase(), 'data');
  await (await startEmbeddedPostgres({ ...FAST, dataDir: initialised })).stop();
});

afterAll(() => rm(path.dirname(initialised), { recursive: true, force: true, maxRetries: 10 }));

beforeEach(async () => {
  base = await makeBase();
  dataDir = path.join(base, 'data');
  systemFolder = path.join(base, 'system');
  notices = [];
  started = [];
  helpers = [];
});

afterEach(async () => {
  for (const helper of helpers) {
    helper.kill('SIGKILL');
  }
  for (const database of started) {
    await database.stop();
  }
  await rm(base, { recursive: true, force: true, maxRetries: 10 });
});

/** Owners and modes stay as they are. */
function copyInitialised(folder = dataDir): void {
  execFileSync('cp', ['-a', initialised, folder]);
}

async function start(folder = dataDir, unusedMs = 60_000): Promise<EmbeddedPostgres> {
  const database = await startEmbeddedPostgres({
    ...FAST,
    dataDir: folder,
    unusedMs,
    systemFolder,
    onNotice: (line) => notices.push(line),
  });
  started.push(database);
  return database;
}

async function query(database: EmbeddedPostgres, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: connectionUrl(database.connection) });
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(sql);
    return rows;
  } finally {
    await client.end();
  }
}

const clusterOf = (folder = dataDir) => realpathSync(path.join(folder, 'postgres'));

async function serverPid(): Promise<number> {
  const running = await readPostmasterPid(clusterOf());
  if (running === null) {
    throw new Error('no server is running');
  }
  return running.pid;
}

/** Kills the server the hard way and waits until it is gone. */
async function killServer(): Promise<number> {
  const pid = await serverPid();
  process.kill(pid, 'SIGKILL');
  await waitFor(() => processIdentity(pid) === null);
  return pid;
}

async function waitFor(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    await delay(10);
  }
}

describe('startEmbeddedPostgres', () => {
  it('makes a private database, for who has the password, in a session of its own', async () => {
    copyInitialised();
    const { connection } = await start();
    const dataSource = new DataSource({ type: 'postgres', url: connectionUrl(connection) });
    await dataSource.initialize();
    const settings = await dataSource.query(
      `select current_setting('listen_addresses') as addresses, current_setting('fsync') as fsync,
              current_setting('timezone') as timezone, current_database() as database, current_user as user,
              (select datcollate || ' ' || datlocprovider::text from pg_database where datname = current_database()) as locale,
              pg_encoding_to_char((select encoding from pg_database where datname = current_database())) as encoding,
              inet_server_addr() as address`,
    );
    await dataSource.destroy();
    expect(settings).toEqual([
      {
        addresses: '',
        fsync: 'on',
        timezone: 'UTC',
        database: 'slipway',
        user: 'slipway',
        locale: 'C b',
        encoding: 'UTF8',
        address: null,
      },
    ]);
    const stranger = new Client({ ...connection, password: 'wrong' });
    await expect(stranger.connect()).rejects.toMatchObject({ code: '28P01' });
    const passwordFile = path.join(dataDir, 'postgres-password');
    expect(statSync(clusterOf()).mode & 0o777).toBe(0o700);
    expect(statSync(passwordFile).mode & 0o777).toBe(0o600);
    expect(statSync(passwordFile).uid).toBe(process.getuid?.());
    expect(statSync(dataDir).mode & 0o007).toBe(0);
    expect(readFileSync(path.join(dataDir, 'postgres.log'), 'utf8')).not.toContain(connection.password);
    const pid = await serverPid();
    const [session, uid] = execFileSync('ps', ['-o', 'sid=,uid=', '-p', `${pid}`], { encoding: 'utf8' })
      .trim()
      .split(/\s+/);
    expect(Number(session)).toBe(pid);
    expect(Number(uid)).toBeGreaterThan(0);
    expect((await readdir(dataDir)).toSorted()).toEqual([
      'postgres',
      'postgres-password',
      'postgres.lock',
      'postgres.log',
    ]);
  });

  it('joins the server of a service that was killed', async () => {
    copyInitialised();
    const first = await start();
    const pid = await serverPid();
    const second = await start();
    expect(await serverPid()).toBe(pid);

    await first.stop(); // The second still uses it.
    expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }]);
    await second.stop();
    expect(processIdentity(pid)).toBeNull();
    expect(notices.at(-1)).toContain('other programs are connected');
  });

  it('ends by itself when every service was killed and no program is connected any more', async () => {
    copyInitialised();
    const database = await start(dataDir, 300);
    const pid = await serverPid();
    const other = new Client({ connectionString: connectionUrl(database.connection) });
    await other.connect();
    // As the end of a service does with the connection that shows its use.
    await other.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid()`,
    );
    // Several times as long as it takes without a connection.
    await other.query('select pg_sleep(1.5)');
    expect(processIdentity(pid)).not.toBeNull();

    await other.end();

    await waitFor(() => processIdentity(pid) === null);
    expect(existsSync(path.join(clusterOf(), 'postmaster.pid'))).toBe(false);
    expect(await query(await start(), 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('leaves the server to a program that is connected', async () => {
    copyInitialised();
    const database = await start();
    const pid = await serverPid();
    const other = new Client({ connectionString: connectionUrl(database.connection) });
    await other.connect();
    await database.stop();
    expect(processIdentity(pid)).not.toBeNull();
    await other.end();
    await (await start()).stop();
    expect(processIdentity(pid)).toBeNull();
  });

  it('does not join the server of the folder of which it is a copy', async () => {
    copyInitialised();
    const original = await start();
    const copied = path.join(base, 'copy');
    copyInitialised(copied);
    execFileSync('cp', ['-a', path.join(clusterOf(), 'postmaster.pid'), clusterOf(copied)]);
    const copy = await start(copied);

    await query(original, 'create table only_here ()');
    expect(await query(copy, "select to_regclass('only_here') as found")).toEqual([{ found: null }]);
  });

  it('loses nothing that was acknowledged when the server is killed', async () => {
    copyInitialised();
    const first = await start();
    await query(first, 'create table numbers (n int)');
    await query(first, 'insert into numbers select generate_series(1, 1000)');
    const old = await killServer();
    const second = await start();
    expect(await serverPid()).not.toBe(old);
    expect(await query(second, 'select count(*)::int from numbers')).toEqual([{ count: 1000 }]);
    await first.stop();
    expect(await query(second, 'select count(*)::int from numbers')).toEqual([{ count: 1000 }]);
  });

  it('is not held up by a pid file whose number belongs to another program now', async () => {
    copyInitialised();
    await start();
    const cluster = clusterOf();
    await killServer();
    const file = path.join(cluster, 'postmaster.pid');
    const lock = path.join(cluster, '.s.PGSQL.5432.lock');
    const { uid, gid } = statSync(cluster);
    // PostgreSQL itself only minds a living process of its own user.
    const stranger = spawn('sleep', ['600'], { uid, gid, cwd: '/' });
    helpers.push(stranger);
    for (const pidFile of [file, lock]) {
      await writeFile(pidFile, readFileSync(pidFile, 'utf8').replace(/^\d+/, `${stranger.pid}`));
    }
    const second = await start();
    expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(stranger.exitCode).toBeNull();
    expect(stranger.signalCode).toBeNull();
  });

  it('starts one server for several starts at the same time, also after an initialisation that was killed midway', async () => {
    const abandoned = path.join(dataDir, 'postgres-initdb-dead', 'cluster');
    mkdirSync(abandoned, { recursive: true, mode: 0o711 });
    chmodSync(dataDir, 0o711);
    await writeFile(path.join(abandoned, 'PG_VERSION'), '18\n');
    const all = await Promise.all([start(), start(), start()]);
    const pids = await Promise.all(
      all.map((database) => query(database, 'select pg_postmaster_start_time()::text as t')),
    );
    expect(new Set(pids.map((rows) => rows[0]?.['t'])).size).toBe(1);
    expect(existsSync(path.dirname(abandoned))).toBe(false);
  });

  it.each(['a path with spaces, "quotes" and a comma', 'x'.repeat(120)])(
    'works in the folder %s',
    async (name) => {
      const folder = path.join(base, name);
      copyInitialised(folder);
      const database = await start(folder);
      expect(await query(database, 'select 1 as one')).toEqual([{ one: 1 }]);
      const socket = path.join(database.connection.host, '.s.PGSQL.5432');
      expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(107);
      expect(statSync(database.connection.host).mode & 0o777).toBe(0o700);
      if (database.connection.host.startsWith(tmpdir()) && !database.connection.host.startsWith(base)) {
        await database.stop();
        await rm(database.connection.host, { recursive: true, maxRetries: 10 });
      }
    },
  );

  it('works in folders that only their owner can enter, also when two installations need the same place', async () => {
    const [one, two] = [path.join(base, 'one'), path.join(base, 'two')] as const;
    [one, two].forEach((folder) => mkdirSync(folder, { mode: 0o700 }));
    const [first, other] = await Promise.all([start(one), start(two)]);
    expect(clusterOf(one)).not.toBe(clusterOf(two));
    await query(first, `create table kept as select 'a row' as value`);
    expect(await query(other, `select to_regclass('kept') as found`)).toEqual([{ found: null }]);
    await first.stop();
    chmodSync(one, 0o755); // Whatever the modes become, the database stays where it is.
    const second = await start(one);
    expect(await query(second, 'select * from kept')).toEqual([{ value: 'a row' }]);
    expect(lstatSync(path.join(one, 'postgres')).isSymbolicLink()).toBe(asRoot);
    expect(notices.filter((line) => line.includes('cannot reach'))).toHaveLength(asRoot ? 2 : 0);
    expect(path.dirname(clusterOf(one))).toBe(asRoot ? systemFolder : one);
  });

  it('says so when another major version made the database', async () => {
    copyInitialised();
    await writeFile(path.join(clusterOf(), 'PG_VERSION'), '15\n');
    await expect(start()).rejects.toThrow(
      /made by PostgreSQL 15, but the installed binaries are PostgreSQL 18/,
    );
  });

  it('says so when the password was lost', async () => {
    copyInitialised();
    const password = path.join(dataDir, 'postgres-password');
    await writeFile(password, '');
    await expect(start()).rejects.toThrow(/postgres-password is missing/);
    await rm(password);
    await expect(start()).rejects.toThrow(/postgres-password is missing/);
  });

  it('leaves no server behind that it started and that refuses it', async () => {
    copyInitialised();
    await writeFile(path.join(dataDir, 'postgres-password'), 'of another database');

    await expect(start(dataDir, 500)).rejects.toThrow(/postgres-password does not fit/);

    await until(() => !existsSync(path.join(clusterOf(), 'postmaster.pid')));
  });

  it("says what the server's complaint was", async () => {
    copyInitialised();
    await expect(
      startEmbeddedPostgres({ ...FAST, dataDir, settings: { shared_buffers: 'many' } }),
    ).rejects.toThrow(/could not be started: .*shared_buffers/);
  });
});

it('has a server watched that is not ready in time, as it may recover for long', async () => {
  const binaries = path.join(base, 'binaries');
  mkdirSync(path.join(binaries, 'bin'), { recursive: true });
  await writeFile(path.join(binaries, 'bin/postgres'), '#!/bin/sh\nexec sleep 300\n', { mode: 0o755 });
  const connection = { host: base, port: 1, user: 'x', password: 'x', database: 'x' };
  const options = { binaries, cluster: base, log: path.join(base, 'log'), user: null, settings: {} };
  await expect(
    connectToPostmaster({ ...options, connection, unusedMs: 600_000, readyMs: 300 }),
  ).rejects.toThrow('did not become ready in time');

  const processes = execFileSync('ps', ['-A', '-o', 'pid=,command='], { encoding: 'utf8' }).split('\n');
  const watch =
    processes.find((line) => line.includes('slipway-postgres-watch') && line.includes(` ${base} `)) ?? '';
  const pids = /^ *(\d+) .*-watch (\d+) /.exec(watch)?.slice(1) ?? [];
  expect(pids).toHaveLength(2);
  pids.forEach((pid) => process.kill(Number(pid)));
});
