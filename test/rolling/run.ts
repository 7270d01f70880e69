import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { COMMAND_LINES } from '../../scripts/lib/command-lines.js';
import { JourneyWorld } from '../system/journeys/support/journey-world.js';
import { startTestServer } from '../support/test-server.js';
import { type Findings, Load } from './load.js';
import { LocalReplicas } from './local-replicas.js';
import { Tally } from './tally.js';

/** Between two restarts. */
const PAUSE_MS = 1_000;
/** Conversations start and run nothing: no model is called. */
const SETTINGS = { llm_model: 'openai/none', llm_base_url: 'http://127.0.0.1:1', llm_api_key: 'sk-none' };

const values = COMMAND_LINES['test/rolling/run.ts'].parse().opts();

const findings = await (values.url === undefined ? loadLocally() : loadService(values.url));
findings.lines.forEach((line) => process.stdout.write(`${line}\n`));
findings.problems.forEach((problem) => process.stdout.write(`PROBLEM ${problem}\n`));
process.stdout.write(`${findings.problems.length === 0 ? 'nothing was lost' : 'NOT AS IT SHOULD BE'}\n`);
process.exitCode = findings.problems.length === 0 ? 0 : 1;

async function loadLocally(): Promise<Findings> {
  const server = await startTestServer();
  const world = await JourneyWorld.open();
  try {
    const replicas = await LocalReplicas.start(world, 2);
    try {
      const tally = new Tally();
      const restart = (index: number) => step(`restart of replica ${index}`, () => replicas.restart(index));
      return await loadDuring(
        tally,
        { url: replicas.url, adminKey: world.adminKey, gitToken: world.hub.token },
        async () => {
          await restart(0);
          await restart(1);
          await step('kill -9 of replica 0', () => replicas.kill(0, tally));
          await restart(0);
          await restart(1);
        },
      );
    } finally {
      await replicas.close();
    }
  } finally {
    await world.close();
    await server.stop();
  }
}

async function loadService(url: string): Promise<Findings> {
  const { key, restart, restarts, kill } = values;
  if (key === undefined) {
    throw new Error('--url needs --key, the key of an administrator');
  }
  const tally = new Tally();
  return await loadDuring(tally, { url, adminKey: key, gitToken: null }, async () => {
    const count = restart === undefined ? 0 : Number(restarts);
    for (let done = 0; done < count; done += 1) {
      await step(`restart ${done + 1}`, () => shell(restart ?? ''));
    }
    if (kill !== undefined) {
      await step('kill', () => tally.duringFault(() => shell(kill)));
    }
  });
}

async function loadDuring(
  tally: Tally,
  target: { url: string; adminKey: string; gitToken: string | null },
  restarts: () => Promise<void>,
): Promise<Findings> {
  const load = await Load.prepare({ ...target, settings: SETTINGS }, tally);
  try {
    return await load.during(async () => {
      const enough = wait(Number(values.seconds) * 1000);
      await wait(PAUSE_MS);
      await restarts();
      await enough;
    });
  } finally {
    await load.close();
  }
}

async function step(what: string, work: () => Promise<void>): Promise<void> {
  const before = performance.now();
  await work();
  process.stdout.write(`${what}: ${((performance.now() - before) / 1000).toFixed(1)} s\n`);
  await wait(PAUSE_MS);
}

async function shell(command: string): Promise<void> {
  const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'inherit', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) {
    throw new Error(`"${command}" ended with ${code}`);
  }
}
