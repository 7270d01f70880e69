import { jsonList } from '../../src/common/json-access.js';
import type { HttpClient } from './http-client.js';
import type { Outcome } from './outcome.js';
import { print } from './print.js';
import { median, spread } from './statistics.js';

const WARM_UPS = 40;
const RUNS = 100;
const MOST_MS = 10;

/** Reads a page of a hundred over and over, in turns with a route that does nothing. */
export async function pageOutcome(client: HttpClient, what: string, path: string): Promise<Outcome> {
  const page: number[] = [];
  const nothing: number[] = [];
  for (let run = 1; run <= WARM_UPS + RUNS; run += 1) {
    const answer = await client.expectOk({ method: 'GET', path });
    const live = await client.expectOk({ method: 'GET', path: '/health/live' });
    if (run === 1 && jsonList(JSON.parse(answer.body), 'items').length !== 100) {
      throw new Error(`${path} did not answer a hundred items`);
    }
    if (run > WARM_UPS) {
      page.push(answer.ms);
      nothing.push(live.ms);
    }
  }
  const ratio = median(page) / median(nothing);
  print(`  ${what}: ${spread(page, 1)} ms, /health/live ${spread(nothing, 1)} ms`);
  return {
    what: `${what}, median (and against /health/live)`,
    target: `<= ${MOST_MS} ms`,
    measured: `${median(page).toFixed(1)} ms (x${ratio.toFixed(1)})`,
    reached: median(page) <= MOST_MS,
  };
}
