import { setTimeout as delay } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import { median, type Outcome, print, spread } from './report.js';
import { removeSandboxes, type SandboxService, SandboxStatuses } from './sandbox-service.js';

const ROUNDS = 10;
/** An agent server loads its routes after its first response, and cannot stop before it has loaded them. */
const LOADED_MS = 1_500;
export const SANDBOXES = '/api/v1/sandboxes';

const PHASES = ['start', 'pause', 'resume'] as const;
type Times = Record<(typeof PHASES)[number], number>;

/** Milliseconds from the request to the row's new status: start, pause and resume of a sandbox. */
export async function lifeOutcomes(
  service: SandboxService,
  backend: string,
  maxMs: Times,
  rounds = ROUNDS,
): Promise<Outcome[]> {
  const statuses = await SandboxStatuses.watch(service.database);
  // A first round that does not count loads what is loaded on first use.
  await lifeOf(service, statuses);
  const lives: Times[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const times = await lifeOf(service, statuses);
    lives.push(times);
    print(
      `  ${backend} round ${round}: ${PHASES.map((phase) => `${phase} ${times[phase].toFixed(0)} ms`).join(', ')}`,
    );
  }
  return PHASES.map((phase) => {
    const times = lives.map((life) => life[phase]);
    return {
      what: `${backend}: ${phase} of a sandbox`,
      target: `<= ${maxMs[phase]} ms`,
      measured: `${spread(times, 0)} ms`,
      reached: median(times) <= maxMs[phase],
    };
  });
}

async function lifeOf(service: SandboxService, statuses: SandboxStatuses): Promise<Times> {
  const [client] = service.clients;
  let id = '';
  const start = await timed(async () => {
    id = jsonText(await client.json({ method: 'POST', path: SANDBOXES }), 'id') ?? '';
    await statuses.until(id, 'RUNNING');
  });
  await delay(LOADED_MS);
  const pause = await timed(async () => {
    await client.expectOk({ method: 'POST', path: `${SANDBOXES}/${id}/pause` });
    await statuses.until(id, 'PAUSED');
  });
  const resume = await timed(async () => {
    await client.expectOk({ method: 'POST', path: `${SANDBOXES}/${id}/resume` });
    await statuses.until(id, 'RUNNING');
  });
  await removeSandboxes(client, service.database);
  return { start, pause, resume };
}

/** Milliseconds that the work takes. */
export async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
