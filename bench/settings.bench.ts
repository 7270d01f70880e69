import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { LoadRequest } from 'autocannon';
import { connectionUrl, startEmbeddedPostgres } from '../src/database/embedded-postgres/embedded-postgres.js';
import { startServiceProcess } from '../test/support/service-process.js';
import { createBenchUsers, settingsBody } from './support/bench-users.js';
import { sendRequests } from './support/http-client.js';
import { type Outcome, print, median, spread } from './support/report.js';
import { processorTimeMs, residentMemoryMb } from './support/process-usage.js';
import { startBaseline } from './support/started-programs.js';
import { withFolder } from './support/fixtures.js';

const USERS = 500;
const CONNECTIONS = 32;
/** Many short rounds, so that other load of the machine hits both sides alike. */
const ROUNDS = 8;
/** A number and no time, so that the same share of them has its key looked up however busy the machine is. */
const ROUND_REQUESTS = 2_000;
/** By then the just-in-time compilers of both sides have done most of their work. */
const WARM_UP_REQUESTS = 8_000;
/** Both sides trust a verified key for 4 s. Each round begins after that: one request of four has its key looked up. */
const KEYS_FORGOTTEN_MS = 4_200;
const POOL_SIZE = '10';
const MIN_RATIO = { GET: 0.75, POST: 0.55 };
const MAX_COST_RATIO = { GET: 1.2, POST: 1.25 };

/**
 * Settings over HTTP against the hand-written baseline, on the same PostgreSQL, in turns. BENCH_PROFILE=folder writes CPU
 * profiles of the service to that folder.
 */
export async function benchSettings(): Promise<Outcome[]> {
  return await withFolder(async (folder) => {
    const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'data') });
    const databaseUrl = connectionUrl(postgres.connection);
    const encryptionKey = randomBytes(32).toString('base64');
    const profiles = process.env['BENCH_PROFILE'];
    try {
      const service = await startServiceProcess({
        cwd: folder,
        environment: {
          DATABASE_URL: databaseUrl,
          DATABASE_POOL_SIZE: POOL_SIZE,
          ENCRYPTION_KEYS: `bench:${encryptionKey}`,
          LOG_REQUESTS: 'false',
          RATE_LIMIT_PER_MINUTE: '0',
        },
        nodeArgs: profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${path.resolve(profiles)}`],
      });
      try {
        const keys = await createBenchUsers(databaseUrl, USERS);
        const baseline = await startBaseline('express-pg.ts', {
          DATABASE_URL: databaseUrl,
          DATABASE_POOL_SIZE: POOL_SIZE,
          ENCRYPTION_KEY: encryptionKey,
        });
        try {
          return await compare({ service, baseline, keys });
        } finally {
          print(
            `  resident after the load: service ${residentMemoryMb(service.pid).toFixed(0)} MB, baseline ${residentMemoryMb(baseline.pid).toFixed(0)} MB`,
          );
          await baseline.stop();
        }
      } finally {
        await service.stop();
      }
    } finally {
      await postgres.stop();
    }
  });
}

interface Side {
  pid: number;
  url: string;
}

async function compare(sides: { service: Side; baseline: Side; keys: string[] }): Promise<Outcome[]> {
  const posts = sides.keys.map((key, index): LoadRequest => ({
    method: 'POST',
    path: '/api/settings',
    headers: { 'x-session-api-key': key, 'content-type': 'application/json' },
    body: settingsBody(index),
  }));
  const gets = sides.keys.map((key): LoadRequest => ({
    method: 'GET',
    path: '/api/settings',
    headers: { 'x-session-api-key': key },
  }));
  const outcomes: Outcome[] = [];
  // POST first: it stores what GET reads.
  for (const [method, requests] of [
    ['POST', posts],
    ['GET', gets],
  ] as const) {
    for (const { url } of [sides.service, sides.baseline]) {
      await sendRequests(url, requests, { amount: WARM_UP_REQUESTS, connections: CONNECTIONS });
    }
    const ratios: number[] = [];
    const costs: number[] = [];
    const spent: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
    for (let round = 1; round <= ROUNDS; round += 1) {
      await delay(KEYS_FORGOTTEN_MS);
      const ours = await measure(sides.service, requests);
      const theirs = await measure(sides.baseline, requests);
      spent.ours.push(ours.cpuMs * 1000);
      spent.theirs.push(theirs.cpuMs * 1000);
      ratios.push(ours.perSecond / theirs.perSecond);
      costs.push(ours.cpuMs / theirs.cpuMs);
      print(
        `  ${method} round ${round}: service ${ours.perSecond.toFixed(0)}/s, Express + pg ${theirs.perSecond.toFixed(0)}/s, ratio ${(ours.perSecond / theirs.perSecond).toFixed(2)}`,
      );
    }
    print(
      `  ${method}: processor time of a response ${spread(spent.ours, 0)} us, Express + pg ${spread(spent.theirs, 0)} us`,
    );
    outcomes.push(
      {
        what: `${method} /api/settings against Express + pg, ${CONNECTIONS} connections`,
        target: `>= ${MIN_RATIO[method]}`,
        measured: spread(ratios, 2),
        reached: median(ratios) >= MIN_RATIO[method],
      },
      {
        what: `${method} /api/settings, processor time of a response against Express + pg`,
        target: `<= ${MAX_COST_RATIO[method]}`,
        measured: spread(costs, 2),
        reached: median(costs) <= MAX_COST_RATIO[method],
      },
    );
  }
  return outcomes;
}

/** One round. On a shared machine the processor time of a response says more than the rate. */
async function measure(side: Side, requests: LoadRequest[]): Promise<{ perSecond: number; cpuMs: number }> {
  const before = processorTimeMs(side.pid);
  const perSecond = await sendRequests(side.url, requests, {
    amount: ROUND_REQUESTS,
    connections: CONNECTIONS,
  });
  const after = processorTimeMs(side.pid);
  const used = before === null || after === null ? NaN : after - before;
  return { perSecond, cpuMs: used / ROUND_REQUESTS };
}
