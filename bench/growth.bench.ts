import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { jsonList } from '@slipway/common/json-access.js';
import { dataFolderPaths } from '@slipway/embedded-postgres/cluster.js';
import {
  connectionUrl,
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '@slipway/embedded-postgres/embedded-postgres.js';
import { type ServiceProcess, startServiceProcess } from '../test/support/service-process.js';
import { createBenchUsers } from './support/bench-users.js';
import { freePort, withFolder } from './support/fixtures.js';
import { findPlaces, type GrowthPlaces, type Listing, LISTINGS } from './support/growth-listings.js';
import { PlanLog, type RunPlan } from './support/growth-plans.js';
import {
  bytesOf,
  FEW,
  fillDatabase,
  type GrowingThing,
  GROWING_TABLES,
  type GrowthSize,
} from './support/growth-rows.js';
import { HttpClient } from './support/http-client.js';
import { median, type Outcome, print } from './support/report.js';

const SMALL: GrowthSize = { users: 10, conversations: 1_000, events: 10_000 };
const LARGE: GrowthSize = {
  users: Number(process.env.BENCH_GROWTH_USERS ?? 100_000),
  conversations: Number(process.env.BENCH_GROWTH_CONVERSATIONS ?? 1_000_000),
  events: Number(process.env.BENCH_GROWTH_EVENTS ?? 1_000_000),
};
const KEYS = `bench:${randomBytes(32).toString('base64')}`;
/** Inserting goes on for minutes: not with each page written twice for a checkpoint that comes every few seconds. */
const FILLING_SETTINGS = { max_wal_size: '16GB', checkpoint_timeout: '1h' };
const MAX_RATIO = 2;
const WARM_UPS = 10;
const RUNS = 41;
/** Rows that a listing of 20 may look at. */
const MAX_ROWS_READ = 2_000;
/** Rows that one round of background work may look at. */
const MAX_BACKGROUND_ROWS = 20_000;
/** Long enough for every reaper, sweeper and poller to have run since the start. */
const BACKGROUND_MS = 35_000;
const MAX_SHOWN = 300;
const HUNDRED_MILLION = 100_000_000;

/** A service with a database of one size. */
interface Installation {
  service: ServiceProcess;
  database: Client;
  databaseUrl: string;
  dataDir: string;
  keys: string[];
  clients: Record<Listing['by'], HttpClient>;
  places: GrowthPlaces;
}

/** Each listing at the small and at the large size, in turns; how the large one is read; what a row takes. */
export async function benchGrowth(): Promise<Outcome[]> {
  return await withFolder(async (folder) => {
    const dataDir = path.join(folder, 'data');
    const postgres = await startEmbeddedPostgres({
      dataDir,
      settings: { ...PlanLog.SETTINGS, ...FILLING_SETTINGS },
    });
    const installed: Installation[] = [];
    try {
      const small = await install(folder, postgres, 'small', SMALL);
      installed.push(small);
      const large = await install(folder, postgres, 'large', LARGE);
      installed.push(large);
      const outcomes: Outcome[] = [];
      for (const listing of LISTINGS) {
        outcomes.push(await compare(listing, small, large));
      }
      await small.service.stop();
      const log = new PlanLog(large.database, dataFolderPaths(dataDir).log);
      const background = await explainBackground(log, large);
      outcomes.push(background.outcome, await explain(log, large, background.statements));
      await tellSizes(large);
      return outcomes;
    } finally {
      for (const { service, database } of installed) {
        await service.stop();
        await database.end();
      }
      await postgres.stop();
    }
  });
}

async function install(
  folder: string,
  postgres: EmbeddedPostgres,
  name: string,
  size: GrowthSize,
): Promise<Installation> {
  const databaseUrl = await createDatabase(connectionUrl(postgres.connection), name);
  const dataDir = path.join(folder, name);
  const service = await startService(dataDir, databaseUrl);
  const database = new Client({ connectionString: databaseUrl });
  await database.connect();
  const keys = await createBenchUsers(databaseUrl, 3);
  const { rows } = await database.query<{ id: string }>(
    `SELECT id FROM users WHERE email LIKE 'bench-%' ORDER BY email`,
  );
  const [many = '', few = '', admin = ''] = rows.map(({ id }) => id);
  await database.query('UPDATE users SET is_admin = true WHERE id = $1', [admin]);
  await fillDatabase(databaseUrl, size, { many, few });
  const { users, conversations: total } = size;
  const places = await findPlaces(database, { many, few, spread: FEW * (users - 1), total, users });
  return { service, database, databaseUrl, dataDir, keys, clients: clientsOf(service, keys), places };
}

function clientsOf(
  { url }: ServiceProcess,
  [many = '', few = '', admin = '']: string[],
): Installation['clients'] {
  return {
    many: new HttpClient(url, many),
    few: new HttpClient(url, few),
    admin: new HttpClient(url, admin),
  };
}

async function createDatabase(address: string, name: string): Promise<string> {
  const client = new Client({ connectionString: address });
  await client.connect();
  try {
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  const url = new URL(address);
  url.pathname = `/${name}`;
  return url.href;
}

async function startService(
  dataDir: string,
  databaseUrl: string,
  further: Record<string, string> = {},
): Promise<ServiceProcess> {
  return await startServiceProcess({
    cwd: path.dirname(dataDir),
    environment: {
      DATABASE_URL: databaseUrl,
      DATA_DIR: dataDir,
      ENCRYPTION_KEYS: KEYS,
      LOG_REQUESTS: 'false',
      RATE_LIMIT_PER_MINUTE: '0',
      ALLOW_UNSANDBOXED: 'true',
      ...further,
    },
    nodeArgs: [],
  });
}

async function read(
  listing: Listing,
  { clients, places }: Installation,
): Promise<{ ms: number; body: string }> {
  return await clients[listing.by].expectOk({ method: 'GET', path: listing.path(places) });
}

async function compare(listing: Listing, small: Installation, large: Installation): Promise<Outcome> {
  const { what, member, rows, counts } = listing;
  const times = { small: [] as number[], large: [] as number[] };
  for (let run = 1; run <= WARM_UPS + RUNS; run += 1) {
    const ofSmall = await read(listing, small);
    const ofLarge = await read(listing, large);
    for (const { body } of run === 1 ? [ofSmall, ofLarge] : []) {
      const found = member === undefined ? null : jsonList(JSON.parse(body), member).length;
      if (rows !== undefined && found !== rows) {
        throw new Error(`${what}: expected ${rows} rows, found ${found}`);
      }
    }
    if (run > WARM_UPS) {
      times.small.push(ofSmall.ms);
      times.large.push(ofLarge.ms);
    }
  }
  const ratio = median(times.large) / median(times.small);
  const measured = `x${ratio.toFixed(2)} (${median(times.small).toFixed(1)} and ${median(times.large).toFixed(1)} ms)`;
  print(`  ${what}: ${measured}`);
  return {
    what: counts === true ? `${what} (it counts what grew)` : what,
    target: `<= ${MAX_RATIO} x`,
    measured,
    reached: ratio <= MAX_RATIO,
  };
}

const LARGE_TABLES = Object.keys(GROWING_TABLES);

/** Partitions have the name of their table in front. */
function scannedLarge({ scanned }: RunPlan): string[] {
  return scanned.filter((name) => LARGE_TABLES.some((table) => name.startsWith(table)));
}

function describe({ statement, rowsRead, scanned }: RunPlan): string {
  return `reads ${rowsRead} rows${scanned.map((table) => `, ${table} from end to end`).join('')}: ${statement.slice(0, MAX_SHOWN)}`;
}

/** @param background what runs beside the readers */
async function explain(log: PlanLog, large: Installation, background: ReadonlySet<string>): Promise<Outcome> {
  const bad: string[] = [];
  for (const listing of LISTINGS) {
    const plans = (await log.during(() => read(listing, large))).filter(
      ({ statement }) => !background.has(statement) && !statement.includes('pg_reload_conf'),
    );
    const rows = plans.reduce((sum, { rowsRead }) => sum + rowsRead, 0);
    const indexes = [...new Set(plans.flatMap((plan) => plan.indexes))];
    print(`  ${listing.what}: ${rows} rows read by ${indexes.join(', ')}`);
    if (plans.flatMap(scannedLarge).length > 0 || (rows > MAX_ROWS_READ && listing.counts !== true)) {
      bad.push(listing.what);
      plans.forEach((plan) => print(`    ${describe(plan)}`));
    }
  }
  return {
    what: `listings that read a large table from end to end, or more than ${MAX_ROWS_READ} rows`,
    target: '0',
    measured: `${bad.length} of ${LISTINGS.length}${bad.map((what) => `; ${what}`).join('')}`,
    reached: bad.length === 0,
  };
}

/** What the service does by itself, from its start on, and what a scraper makes it do. */
async function explainBackground(
  log: PlanLog,
  large: Installation,
): Promise<{ outcome: Outcome; statements: Set<string> }> {
  const port = String(await freePort());
  const metricsUrl = `http://127.0.0.1:${port}/metrics`;
  await large.service.stop();
  const plans = await log.during(async () => {
    large.service = await startService(large.dataDir, large.databaseUrl, { METRICS_PORT: port });
    large.clients = clientsOf(large.service, large.keys);
    await delay(BACKGROUND_MS);
    const response = await fetch(metricsUrl);
    if (!response.ok) {
      throw new Error(`${metricsUrl} responded ${response.status}`);
    }
    await response.text();
  });
  const worst = new Map<string, RunPlan>();
  for (const plan of plans) {
    if ((worst.get(plan.statement)?.rowsRead ?? -1) < plan.rowsRead) {
      worst.set(plan.statement, plan);
    }
  }
  const bad = [...worst.values()].filter(
    (plan) => scannedLarge(plan).length > 0 || plan.rowsRead > MAX_BACKGROUND_ROWS,
  );
  bad.forEach((plan) => print(`  ${describe(plan)}`));
  return {
    outcome: {
      what: `statements of background work and metrics that read a large table from end to end, or more than ${MAX_BACKGROUND_ROWS} rows`,
      target: '0',
      measured: `${bad.length} of ${worst.size}`,
      reached: bad.length === 0,
    },
    statements: new Set(worst.keys()),
  };
}

async function tellSizes({ database }: Installation): Promise<void> {
  const counts: Record<GrowingThing, number> = {
    user: LARGE.users,
    sandbox: LARGE.users + LARGE.conversations / 100,
    conversation: LARGE.conversations,
    delivery: LARGE.conversations,
    'audit entry': LARGE.conversations,
    event: LARGE.events,
  };
  for (const [thing, { table, indexes }] of await bytesOf(database)) {
    const each = (bytes: number): string => (bytes / counts[thing]).toFixed(0);
    print(`  each ${thing}: ${each(table)} bytes of table and ${each(indexes)} of indexes`);
    if (thing === 'event') {
      const gigabytes = (((table + indexes) / counts.event) * HUNDRED_MILLION) / 1e9;
      print(`  ${HUNDRED_MILLION} events, by arithmetic: ${gigabytes.toFixed(0)} GB`);
    }
  }
}
