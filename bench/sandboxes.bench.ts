import { pageOutcome } from './support/http-client.js';
import { type Outcome, print } from './support/report.js';
import { lifeOutcomes, SANDBOXES } from './support/sandbox-lives.js';
import { insertSandboxes, withSandboxService } from './support/sandbox-service.js';

const MAX_PROCESS_MS = { start: 200, pause: 50, resume: 200 };
const MAX_CONTAINER_MS = { start: 1_000, pause: 1_000, resume: 1_000 };
const PAGE_SIZE = 100;

/**
 * The life of a sandbox, and a page of sandboxes. SLIPWAY_BENCH_DOCKER=image also measures containers of that image
 * (DOCKER_HOST as for the docker command).
 */
export async function benchSandboxes(): Promise<Outcome[]> {
  const outcomes = await withSandboxService({}, async (service) => {
    const ofProcesses = await lifeOutcomes(service, 'process', MAX_PROCESS_MS);
    await insertSandboxes(service, PAGE_SIZE);
    const [, reader] = service.clients;
    return [
      ...ofProcesses,
      await pageOutcome(reader, `a page of ${PAGE_SIZE} sandboxes`, `${SANDBOXES}/search?limit=${PAGE_SIZE}`),
    ];
  });
  if (process.env['SLIPWAY_BENCH_DOCKER'] === undefined) {
    print('  containers: not measured (SLIPWAY_BENCH_DOCKER names no image)');
    return outcomes;
  }
  const environment = {
    SANDBOX_BACKEND: 'docker',
    SANDBOX_IMAGE: process.env['SLIPWAY_BENCH_DOCKER'],
    ...(process.env['DOCKER_HOST'] !== undefined && { DOCKER_HOST: process.env['DOCKER_HOST'] }),
  };
  const ofContainers = await withSandboxService(environment, (service) =>
    lifeOutcomes(service, 'docker', MAX_CONTAINER_MS),
  );
  return [...outcomes, ...ofContainers];
}
