import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { LoadRequest } from 'autocannon';
import { connectionUrl, startEmbeddedPostgres } from '../src/database/embedded-postgres/embedded-postgres.js';
import { startServiceProcess } from '../test/support/service-process.js';
import { createBenchUsers } from './support/bench-users.js';
import { answersPerSecond } from './support/load.js';
import type { Outcome } from './support/outcome.js';
import { print } from './support/print.js';
import { residentMemoryMb } from './support/resident-memory.js';
import { settingsBody } from './support/settings-body.js';
import { startBaseline } from './support/start-baseline.js';
import { median, spread } from './support/statistics.js';
import { withFolder } from './support/with-folder.js';

const USERS = 500;
const CONNECTIONS = 32;
const ROUNDS = 5;
const ROUND_SECONDS = 3;
const WARM_UP_SECONDS = 4;
const POOL_SIZE = '10';
const LEAST_RATIO = { GET: 0.75, POST: 0.55 };

/**
 * Settings over HTTP against the hand-written program, on one PostgreSQL, in turns. BENCH_PROFILE=folder leaves CPU
 * profiles of the service there.
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
        const baseline = await startBaseline({
          DATABASE_URL: databaseUrl,
          DATABASE_POOL_SIZE: POOL_SIZE,
          ENCRYPTION_KEY: encryptionKey,
        });
        try {
          return await compare({ service: service.url, baseline: baseline.url, keys });
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

async function compare(sides: { service: string; baseline: string; keys: string[] }): Promise<Outcome[]> {
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
  // POST first: it stores what GET shows.
  for (const [method, requests] of [
    ['POST', posts],
    ['GET', gets],
  ] as const) {
    for (const url of [sides.service, sides.baseline]) {
      await answersPerSecond(url, requests, { duration: WARM_UP_SECONDS, connections: CONNECTIONS });
    }
    const ratios: number[] = [];
    for (let round = 1; round <= ROUNDS; round += 1) {
      const load = { duration: ROUND_SECONDS, connections: CONNECTIONS };
      const ours = await answersPerSecond(sides.service, requests, load);
      const theirs = await answersPerSecond(sides.baseline, requests, load);
      ratios.push(ours / theirs);
      print(
        `  ${method} round ${round}: service ${ours.toFixed(0)}/s, Express + pg ${theirs.toFixed(0)}/s, ratio ${(ours / theirs).toFixed(2)}`,
      );
    }
    outcomes.push({
      what: `${method} /api/settings against Express + pg, ${CONNECTIONS} connections`,
      target: `>= ${LEAST_RATIO[method]}`,
      measured: spread(ratios, 2),
      reached: median(ratios) >= LEAST_RATIO[method],
    });
  }
  return outcomes;
}
