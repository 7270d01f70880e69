import { randomInt } from 'node:crypto';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { COMMAND_LINES } from '../../scripts/lib/command-lines.js';
import { NotInstallable } from '../clients/client.js';
import { ClientCache } from '../clients/support/client-cache.js';
import { agentServerTarget } from './agent-server.target.js';
import type { FuzzTarget } from './fuzz-target.js';
import { serviceTarget } from './service.target.js';
import { fuzz, type FuzzResult } from './support/fuzz-passes.js';
import { FuzzWorld } from './support/fuzz-world.js';
import { failureTexts, table } from './support/report.js';
import { Schemathesis } from './support/schemathesis.js';

/** In this order: what is sent to the service may end the sandbox. */
const TARGETS = [
  { name: 'agent server', open: agentServerTarget, share: 0.05 },
  { name: 'service', open: serviceTarget, share: 0.95 },
];
const SEEDS = 2 ** 31;

const values = COMMAND_LINES['test/fuzz/run.ts'].parse().opts();
const print = (line: string): void => void process.stdout.write(`${line}\n`);

await main({
  cases: wholeNumber('cases', values.cases),
  seed: values.seed === undefined ? randomInt(SEEDS) : wholeNumber('seed', values.seed),
  minutes: wholeNumber('minutes', values.minutes),
});

async function main({ cases, seed, minutes }: Record<'cases' | 'seed' | 'minutes', number>): Promise<void> {
  const targets = TARGETS.filter(({ name }) => values.target === undefined || values.target === name);
  if (targets.length === 0) {
    throw new Error(`there is no target "${values.target}"; there are: service, agent server`);
  }
  print(`seed ${seed}: npm run fuzz -- --cases ${cases} --seed ${seed} repeats this run`);
  const deadline = performance.now() + minutes * 60_000;
  const results: FuzzResult[] = [];
  const broken: string[] = [];
  try {
    const folder = values.cache ?? process.env['CLIENTS_CACHE'] ?? path.join(tmpdir(), 'slipway-clients');
    const show = values.verbose ? print : () => undefined;
    const schemathesis = await Schemathesis.install(new ClientCache(path.resolve(folder), print), show);
    const world = await FuzzWorld.open();
    try {
      const shares = targets.reduce((sum, { share }) => sum + share, 0);
      for (const { open, share } of targets) {
        const target: FuzzTarget = await open(world);
        const wanted = Math.ceil((cases * share) / shares);
        results.push(
          await fuzz(schemathesis, target, {
            cases: wanted,
            seed,
            only: values.only ?? null,
            deadline,
            print,
          }),
        );
      }
      broken.push(...world.errors().map((line) => `the service logged an error: ${line}`));
    } finally {
      await world.close();
    }
  } catch (error) {
    if (values.optional && error instanceof NotInstallable) {
      print(`NOT TRIED: ${errorMessage(error)}\n0 passed, 0 failed`);
      return;
    }
    broken.push(errorMessage(error));
  }
  report(results, broken);
}

function report(results: readonly FuzzResult[], broken: readonly string[]): void {
  results.flatMap(failureTexts).forEach(print);
  print(`\n${table(results)}`);
  broken.forEach((line) => print(`FAILED  ${line}`));
  const short = results.filter(({ cases, wanted }) => cases < wanted);
  short.forEach(({ target, cases, wanted }) =>
    print(`FAILED  ${target}: ${cases} of ${wanted} cases in time`),
  );
  const bad = results.reduce((sum, { failedOperations }) => sum + failedOperations, 0);
  const operations = results.reduce((sum, result) => sum + result.operations, 0);
  const failed = bad + broken.length + short.length;
  print(`${operations - bad} passed, ${failed} failed`);
  process.exitCode = failed === 0 && operations > 0 ? 0 : 1;
}

function wholeNumber(name: string, given: string): number {
  const number = Number(given);
  if (!Number.isSafeInteger(number) || number < 0) {
    throw new Error(`--${name} wants a whole number`);
  }
  return number;
}
