import {
  type FakeGitHosts,
  type BenchProvider,
  PROVIDERS,
  startFakeGitHosts,
} from './support/fake-git-hosts.js';
import { HttpClient } from './support/http-client.js';
import { atMost, type Outcome, print, median, spread } from './support/report.js';
import { withSandboxService } from './support/sandbox-service.js';

const LATENCY_MS = 150;
/** Round trips on the critical path of a cold response. Bitbucket's fourth is the redirect of `/conflicts`. */
const ROUND_TRIPS: Record<BenchProvider, number> = { github: 1, gitlab: 1, bitbucket: 4 };
const MAX_COLD_RATIO = 1.1;
/** Against a route that does nothing. */
const MAX_WARM_RATIO = 2;
const WARM_UPS = 2;
const COLD_RUNS = 7;
const WARM_RUNS = 400;
const CALLERS = 50;
const TASKS = '/api/user/suggested-tasks';

/** Suggested tasks, cold and warm, with fake git hosts that take 150 ms for every response. */
export async function benchSuggestedTasks(): Promise<Outcome[]> {
  const hosts = await startFakeGitHosts(LATENCY_MS);
  try {
    return await withSandboxService(hosts.environment, async ({ clients: [client] }) => [
      ...(await coldOutcomes(client, hosts)),
      await warmOutcome(client),
      await sharedOutcome(client, hosts),
    ]);
  } finally {
    await hosts.close();
  }
}

async function coldOutcomes(client: HttpClient, hosts: FakeGitHosts): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const providers of [...PROVIDERS, PROVIDERS.join(',')]) {
    const trips = Math.max(
      ...PROVIDERS.filter((name) => providers.includes(name)).map((name) => ROUND_TRIPS[name]),
    );
    const ratios: number[] = [];
    for (let run = 1; run <= WARM_UPS + COLD_RUNS; run += 1) {
      await storeNewTokens(client, hosts);
      const { ms } = await client.expectOk({ method: 'GET', path: `${TASKS}?providers=${providers}` });
      if (run > WARM_UPS) {
        ratios.push(ms / (trips * LATENCY_MS));
      }
    }
    print(`  cold, ${providers}: ${trips} round trips of ${LATENCY_MS} ms, ratio ${spread(ratios, 2)}`);
    const what = `cold suggested tasks of ${providers} against ${trips} x ${LATENCY_MS} ms`;
    outcomes.push(atMost(what, ratios, MAX_COLD_RATIO, { unit: '', digits: 2 }));
  }
  return outcomes;
}

/** Responses from the cache, in turns with a route that does nothing. */
async function warmOutcome(client: HttpClient): Promise<Outcome> {
  const warm: number[] = [];
  const nothing: number[] = [];
  for (let run = 1; run <= WARM_RUNS; run += 1) {
    warm.push((await client.expectOk({ method: 'GET', path: TASKS })).ms);
    nothing.push((await client.expectOk({ method: 'GET', path: '/health/live' })).ms);
  }
  const ratio = median(warm) / median(nothing);
  print(
    `  warm: median ${median(warm).toFixed(2)} ms, /health/live ${median(nothing).toFixed(2)} ms, ratio ${ratio.toFixed(1)}`,
  );
  return atMost('warm suggested tasks against /health/live, medians', ratio, MAX_WARM_RATIO, {
    unit: '',
    digits: 1,
    note: `${median(warm).toFixed(2)} ms`,
  });
}

/** Many cold callers at once must cost the hosts as many requests as one. */
async function sharedOutcome(client: HttpClient, hosts: FakeGitHosts): Promise<Outcome> {
  await storeNewTokens(client, hosts);
  await client.expectOk({ method: 'GET', path: TASKS });
  const ofOne = total(hosts.takeCounts());
  await storeNewTokens(client, hosts);
  await Promise.all(Array.from({ length: CALLERS }, () => client.expectOk({ method: 'GET', path: TASKS })));
  const ofMany = total(hosts.takeCounts());
  print(`  ${CALLERS} cold callers at once: ${ofMany} upstream requests; one: ${ofOne}`);
  return {
    what: `upstream requests of ${CALLERS} concurrent cold callers against those of one`,
    target: '= 1',
    measured: (ofMany / ofOne).toFixed(2),
    reached: ofMany === ofOne,
  };
}

async function storeNewTokens(client: HttpClient, hosts: FakeGitHosts): Promise<void> {
  await client.expectOk({ method: 'POST', path: '/api/add-git-providers', body: hosts.rotateTokens() });
  hosts.takeCounts();
}

function total(counts: Record<BenchProvider, number>): number {
  return PROVIDERS.reduce((sum, name) => sum + counts[name], 0);
}
