import { setTimeout as delay } from 'node:timers/promises';
import { jsonText } from '@slipway/common/json-access.js';
import type { BareProgram } from './bare-programs.js';
import { median, type Outcome, print, spread } from './report.js';
import { removeSandboxes, type SandboxService, SandboxStatuses } from './sandbox-service.js';

const ROUNDS = 15;
/** An agent server loads its routes after its first response, and cannot stop before it has loaded them. */
const LOADED_MS = 1_500;
export const SANDBOXES = '/api/v1/sandboxes';

const PHASES = ['start', 'pause', 'resume'] as const;
type Times = Record<(typeof PHASES)[number], number>;

/** Start, pause and resume of a sandbox and of the bare program, in turns. */
export async function compareLives(
  service: SandboxService,
  backend: string,
  maxRatio: number,
  makeBare: () => BareProgram,
  rounds = ROUNDS,
): Promise<Outcome[]> {
  const statuses = await SandboxStatuses.watch(service.database);
  // A first round that does not count loads what is loaded on first use.
  await ofService(service, statuses);
  await ofBare(makeBare());
  const ours: Times[] = [];
  const theirs: Times[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const bare = await ofBare(makeBare());
    const sandbox = await ofService(service, statuses);
    ours.push(sandbox);
    theirs.push(bare);
    const line = PHASES.map(
      (phase) => `${phase} ${sandbox[phase].toFixed(0)} ms, bare ${bare[phase].toFixed(0)} ms`,
    );
    print(`  ${backend} round ${round}: ${line.join('; ')}`);
  }
  return PHASES.map((phase) => {
    const ratios = ours.map((times, index) => times[phase] / (theirs[index]?.[phase] ?? NaN));
    const ms = median(ours.map((times) => times[phase])).toFixed(0);
    return {
      what: `${backend}: ${phase} of a sandbox against the bare program`,
      target: `<= ${maxRatio}`,
      measured: `${spread(ratios, 2)}, ${ms} ms`,
      reached: median(ratios) <= maxRatio,
    };
  });
}

async function ofService(service: SandboxService, statuses: SandboxStatuses): Promise<Times> {
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

async function ofBare(bare: BareProgram): Promise<Times> {
  try {
    const start = await timed(() => bare.start());
    await delay(LOADED_MS);
    const pause = await timed(() => bare.stop());
    const resume = await timed(() => bare.restart());
    return { start, pause, resume };
  } finally {
    await bare.remove();
  }
}

export async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
