import { randomInt } from 'node:crypto';
import { within } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { COMMAND_LINES } from '../../scripts/lib/command-lines.js';
import { namedExports } from '../support/program-runs.js';
import { startTestServer } from '../support/test-server.js';
import { type Amount, NotTried, type Outcome, type Scenario } from './scenario.js';
import { seedPauses } from './support/pauses.js';
import { type Row, summary, table } from './support/report.js';

const SCENARIO_TIMEOUT_MS = 900_000;
const ALL: Amount = { kills: 100, killSeconds: 330, postgresKills: 20, rounds: 10, answerMs: 2_000 };
/** On a machine that does more than this, an answer may take longer. */
const SHORT: Amount = { kills: 4, killSeconds: 30, postgresKills: 2, rounds: 2, answerMs: 8_000 };
const SEEDS = 2 ** 31;

const values = COMMAND_LINES['test/chaos/run.ts'].parse().opts();

const scenarios = await namedExports<Scenario>(new URL('scenarios/', import.meta.url), '.scenario.ts');
const chosen = scenarios.filter(({ name, isShort }) =>
  values.only.length > 0 ? values.only.some((part) => name.includes(part)) : isShort || !values.short,
);
if (chosen.length === 0) {
  throw new Error('no scenario has such a name; see npm run chaos -- --list');
}
if (values.list) {
  chosen.forEach(({ name, what }) => process.stdout.write(`${name}: ${what}\n`));
} else {
  await main(chosen);
}

async function main(scenarios: Scenario[]): Promise<void> {
  const given = values.short ? SHORT : ALL;
  const amount = { ...given, ...(values.kills !== undefined && { kills: Number(values.kills) }) };
  if (!Number.isInteger(amount.kills) || amount.kills < 1) {
    throw new Error(`--kills is a number of at least 1, not "${values.kills}"`);
  }
  const seed = values.seed === undefined ? randomInt(SEEDS) : Number(values.seed);
  process.stdout.write(`pauses of seed ${seed}\n`);
  seedPauses(seed);
  const server = await startTestServer();
  const rows: Row[] = [];
  try {
    for (const scenario of scenarios) {
      const before = performance.now();
      const result = await attempt(scenario, amount);
      const row = { name: scenario.name, result, seconds: (performance.now() - before) / 1000 };
      rows.push(row);
      process.stdout.write(`${summary(row, values.verbose === true)}\n`);
    }
  } finally {
    await server.stop();
  }
  process.stdout.write(`\n${table(rows)}\n`);
  const failed = rows.filter(({ result }) => isFailed(result)).length;
  const passed = rows.filter(({ result }) => !(result instanceof Error || isFailed(result))).length;
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  // A scenario that was given up may still be at work.
  process.exit(failed === 0 && passed > 0 ? 0 : 1);
}

function isFailed(result: Outcome | Error): boolean {
  return result instanceof Error ? !(result instanceof NotTried) : result.problems.length > 0;
}

async function attempt(scenario: Scenario, amount: Amount): Promise<Outcome | Error> {
  try {
    const outcome = await within(SCENARIO_TIMEOUT_MS, scenario.run(amount));
    return outcome ?? new Error(`it has not ended after ${SCENARIO_TIMEOUT_MS / 1000} s`);
  } catch (error) {
    return error instanceof NotTried ? error : new Error(errorMessage(error), { cause: error });
  }
}
