import { BareAgentServer, BareContainer } from './support/bare-programs.js';
import { pageOutcome } from './support/http-client.js';
import { type Outcome, print } from './support/report.js';
import { compareLives, SANDBOXES } from './support/sandbox-lives.js';
import { insertSandboxes, withSandboxService } from './support/sandbox-service.js';

const MAX_PROCESS_RATIO = 2;
const MAX_CONTAINER_RATIO = 1.5;
const PAGE_SIZE = 100;

/**
 * The life of a sandbox against that of the same program without the service, in turns, and a page of sandboxes.
 * SLIPWAY_BENCH_DOCKER=image also measures containers of that image (DOCKER_HOST as for the docker command).
 */
export async function benchSandboxes(): Promise<Outcome[]> {
  const outcomes = await withSandboxService({}, async (service) => {
    const makeBare = () => new BareAgentServer(service.dataDir);
    const ofProcesses = await compareLives(service, 'process', MAX_PROCESS_RATIO, makeBare);
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
    (service) => compareLives(service, 'docker', MAX_CONTAINER_RATIO, () => new BareContainer(image)),
  );
  return [...outcomes, ...ofContainers];
}
