import { setTimeout as wait } from 'node:timers/promises';
import { jsonText } from '../src/common/json-access.js';
import { BareAgentServer } from './support/bare-agent-server.js';
import { BareContainer } from './support/bare-container.js';
import type { BareProgram } from './support/bare-program.js';
import { insertSandboxes } from './support/bench-rows.js';
import type { Outcome } from './support/outcome.js';
import { pageOutcome } from './support/page-outcome.js';
import { print } from './support/print.js';
import { removeSandboxes, type SandboxService, withSandboxService } from './support/sandbox-service.js';
import { SandboxStatuses } from './support/sandbox-statuses.js';
import { median, spread } from './support/statistics.js';

const ROUNDS = 15;
const MOST_OF_PROCESS = 2;
const MOST_OF_CONTAINER = 1.5;
const PAGE = 100;
/** An agent server loads its routes after its first answer: one that is stopped meanwhile has to end that first. */
const LOADED_MS = 1_500;
const SANDBOXES = '/api/v1/sandboxes';

const PHASES = ['start', 'pause', 'resume'] as const;
type Times = Record<(typeof PHASES)[number], number>;

/**
 * The life of a sandbox against that of a program without the service, in turns; and the list of sandboxes.
 * SLIPWAY_BENCH_DOCKER=image measures containers of that image too (DOCKER_HOST as for the docker command).
 */
export async function benchSandboxes(): Promise<Outcome[]> {
  const outcomes = await withSandboxService({}, async (service) => {
    const makeBare = () => new BareAgentServer(service.dataDir);
    const ofProcesses = await compare(service, 'process', MOST_OF_PROCESS, makeBare);
    await insertSandboxes(service, PAGE);
    const [, reader] = service.clients;
    return [
      ...ofProcesses,
      await pageOutcome(reader, `a page of ${PAGE} sandboxes`, `${SANDBOXES}/search?limit=${PAGE}`),
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
    (service) => compare(service, 'docker', MOST_OF_CONTAINER, () => new BareContainer(image)),
  );
  return [...outcomes, ...ofContainers];
}

async function compare(
  service: SandboxService,
  backend: string,
  most: number,
  makeBare: () => BareProgram,
): Promise<Outcome[]> {
  const statuses = await SandboxStatuses.watch(service.database);
  // Once without counting: what is loaded at first use is loaded then.
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
      target: `<= ${most}`,
      measured: `${spread(ratios, 2)}, ${ms} ms`,
      reached: median(ratios) <= most,
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
  await wait(LOADED_MS);
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
    await wait(LOADED_MS);
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
