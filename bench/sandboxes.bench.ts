import { setTimeout as delay } from 'node:timers/promises';
import { jsonText } from '../src/common/json-access.js';
import { BareAgentServer, BareContainer, type BareProgram } from './support/bare-programs.js';
import {
  insertSandboxes,
  removeSandboxes,
  type SandboxService,
  withSandboxService,
  SandboxStatuses,
} from './support/sandbox-service.js';
import { type Outcome, print, median, spread } from './support/report.js';
import { pageOutcome } from './support/http-client.js';

const ROUNDS = 15;
const MAX_PROCESS_RATIO = 2;
const MAX_CONTAINER_RATIO = 1.5;
const PAGE_SIZE = 100;
/** An agent server loads its routes after its first response, and cannot stop before it has loaded them. */
const LOADED_MS = 1_500;
const SANDBOXES = '/api/v1/sandboxes';

const PHASES = ['start', 'pause', 'resume'] as const;
type Times = Record<(typeof PHASES)[number], number>;

/**
 * The life of a sandbox against that of the same program without the service, in turns, and a page of sandboxes.
 * SLIPWAY_BENCH_DOCKER=image also measures containers of that image (DOCKER_HOST as for the docker command).
 */
export async function benchSandboxes(): Promise<Outcome[]> {
  const outcomes = await withSandboxService({}, async (service) => {
    const makeBare = () => new BareAgentServer(service.dataDir);
    const ofProcesses = await compare(service, 'process', MAX_PROCESS_RATIO, makeBare);
    await insertSandboxes(service, PAGE_SIZE);
    const [, reader] = service.clients;
    return [
      ...ofProcesses,
      await pageOutcome(reader, `a page of ${PAGE_SIZE} sandboxes`, `${SANDBOXES}/search?limit=${PAGE_SIZE}`),
    ];
  });
  const image = process.env['SLIPWAY_BENCH_DOCKER'];
  if (image === undefined) {
    print('  containers: not measured (SLIPWAY_BENCH_DOCKER names no image)');
    return outcomes;
  }
  const dockerHost = process.env['DOCKER_HOST'];
  const ofContainers = await withSandboxService(
    { SANDBOX_BACKEND: 'docker', ...(dockerHost !== undefined && { DOCKER_HOST: dockerHost }) },
    (service) => compare(service, 'docker', MAX_CONTAINER_RATIO, () => new BareContainer(image)),
  );
  return [...outcomes, ...ofContainers];
}

async function compare(
  service: SandboxService,
  backend: string,
  maxRatio: number,
  makeBare: () => BareProgram,
): Promise<Outcome[]> {
  const statuses = await SandboxStatuses.watch(service.database);
  // A first round that does not count loads what is loaded on first use.
  await ofService(service, statuses);
  await ofBare(makeBare());
  const ours: Times[] = [];
  const theirs: Times[] = [];
  for (let round = 1; round <= ROUNDS; round += 1) {
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

async function timed(work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
