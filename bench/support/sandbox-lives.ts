import { setTimeout as delay } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import type { HttpClient } from './http-client.js';
import { atMost, type Outcome, print, timed } from './report.js';
import { removeSandboxes, type SandboxService, untilStatus } from './sandbox-service.js';

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
  // A first round that does not count loads what is loaded on first use.
  await lifeOf(service);
  const lives: Times[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const times = await lifeOf(service);
    lives.push(times);
    const text = PHASES.map((phase) => `${phase} ${times[phase].toFixed(0)} ms`).join(', ');
    print(`  ${backend} round ${round}: ${text}`);
  }
  return PHASES.map((phase) => {
    const times = lives.map((life) => life[phase]);
    return atMost(`${backend}: ${phase} of a sandbox`, times, maxMs[phase]);
  });
}

async function lifeOf({ clients: [client], database }: SandboxService): Promise<Times> {
  let id = '';
  const start = await timed(async () => {
    id = await startedSandbox(client);
    await untilStatus(database, id, 'RUNNING');
  });
  await delay(LOADED_MS);
  const reach = async (verb: string, status: string): Promise<number> =>
    timed(async () => {
      await client.expectOk({ method: 'POST', path: `${SANDBOXES}/${id}/${verb}` });
      await untilStatus(database, id, status);
    });
  const pause = await reach('pause', 'PAUSED');
  const resume = await reach('resume', 'RUNNING');
  await removeSandboxes(client, database);
  return { start, pause, resume };
}

export async function startedSandbox(client: HttpClient): Promise<string> {
  return jsonText(await client.json({ method: 'POST', path: SANDBOXES }), 'id') ?? '';
}
