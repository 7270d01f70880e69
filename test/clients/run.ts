import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { COMMAND_LINES } from '../../scripts/lib/command-lines.js';
import { namedExports } from '../support/program-runs.js';
import { type Client, NotInstallable } from './client.js';
import { ClientCache } from './support/client-cache.js';
import { ClientsWorld } from './support/clients-world.js';
import { type StepResult, Steps, table } from './support/steps.js';

const values = COMMAND_LINES['test/clients/run.ts'].parse().opts();
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const clients = (await namedExports<Client>(new URL('./', import.meta.url), '.client.ts')).filter(
  ({ name }) => values.only.length === 0 || values.only.some((part) => name.includes(part)),
);
if (clients.length === 0) {
  throw new Error('no client has such a name; see npm run test:clients -- --list');
}
if (values.list) {
  clients.forEach(({ name, what }) => print(`${name}: ${what}`));
} else {
  await main(clients);
}

async function main(clients: readonly Client[]): Promise<void> {
  const folder = values.cache ?? process.env['CLIENTS_CACHE'] ?? path.join(tmpdir(), 'slipway-clients');
  const cache = new ClientCache(path.resolve(folder), print);
  const shots = fileURLToPath(new URL('screenshots/', import.meta.url));
  await mkdir(shots, { recursive: true });
  const results: StepResult[] = [];
  for (const client of clients) {
    results.push(...(await runClient(client, cache, shots)));
  }
  print(`\n${table(results)}`);
  const passed = results.filter(({ verdict }) => verdict === 'passed').length;
  const failed = results.filter(({ verdict }) => verdict === 'FAILED').length;
  print(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

/** Each client has a service of its own, so that none stumbles over what another has left. */
async function runClient(client: Client, cache: ClientCache, shots: string): Promise<StepResult[]> {
  print(`\n== ${client.name}: ${client.what}`);
  const steps = new Steps(client.name, print);
  try {
    const installed = await client.install(cache);
    const world = await ClientsWorld.open(shots, installed.environment ?? {});
    try {
      await installed.run(world, steps);
    } catch (error) {
      steps.add({ step: 'all of it', seen: errorMessage(error), verdict: 'FAILED' });
    }
    await steps.step('no secret where it must not be', async () => {
      await world.close();
      return 'processes, database, files and log were looked through';
    });
  } catch (error) {
    const verdict = error instanceof NotInstallable ? 'not run' : 'FAILED';
    steps.add({ step: 'install', seen: errorMessage(error), verdict });
  }
  return steps.results;
}
