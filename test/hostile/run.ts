import { within } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { COMMAND_LINES } from '../../scripts/lib/command-lines.js';
import { namedExports } from '../support/program-runs.js';
import { type Attack, type AttackedBackend, BACKENDS, type Sighting } from './attack.js';
import { missingFor } from './support/backends.js';
import { HostileWorld } from './support/hostile-world.js';
import { type Result, resultOf, table } from './support/report.js';

/** Bounds what hangs; a busy machine takes ten times as long as a quiet one. */
const ATTACK_TIMEOUT_MS = 600_000;

/** The attack may still be at work on its world. */
class NeverEnded extends Error {}

const values = COMMAND_LINES['test/hostile/run.ts'].parse().opts();

const [part = NaN, parts = NaN] = values.part.split('/').map(Number);
if (!(part >= 1 && part <= parts)) {
  throw new Error(`--part wants two numbers such as 1/2, not ${values.part}`);
}
const all = await namedExports<Attack>(new URL('attacks/', import.meta.url), '.attack.ts');
const attacks = all
  .filter(
    ({ name, timed = false }) =>
      (values.timed === values.untimed || timed === values.timed) &&
      (values.only.length === 0 || values.only.some((text) => name.includes(text))) &&
      !values.except.some((text) => name.includes(text)),
  )
  .filter((_attack, index) => index % parts === part - 1);
if (attacks.length === 0) {
  throw new Error('no attack has such a name; see npm run hostile -- --list');
}
if (values.list) {
  attacks.forEach(({ name, what }) => process.stdout.write(`${name}: ${what}\n`));
} else {
  await main(attacks, values.backend);
}

async function main(attacks: Attack[], wanted: string[]): Promise<void> {
  const unknown = wanted.find((name) => !BACKENDS.some((backend) => backend === name));
  if (unknown !== undefined) {
    throw new Error(`there is no backend "${unknown}"; there are: ${BACKENDS.join(', ')}`);
  }
  const results: Result[] = [];
  const skipped: string[] = [];
  for (const backend of BACKENDS) {
    if (wanted.length > 0 && !wanted.includes(backend)) {
      continue;
    }
    const missing = await missingFor(backend);
    if (missing === null) {
      results.push(...(await attackBackend(backend, attacks)));
    } else if (wanted.includes(backend)) {
      throw new Error(`${backend}: ${missing}`);
    } else {
      skipped.push(`${backend} was not attacked: ${missing}`);
    }
  }
  process.stdout.write(`\n${table(results)}\n`);
  skipped.forEach((line) => process.stdout.write(`${line}\n`));
  const failed = results.filter(({ passed }) => !passed).length;
  process.stdout.write(`${results.length - failed} passed, ${failed} failed\n`);
  process.exitCode = failed === 0 && results.length > 0 ? 0 : 1;
}

async function attackBackend(backend: AttackedBackend, attacks: Attack[]): Promise<Result[]> {
  const mine = attacks.filter((attack) => attack.expected[backend] !== undefined);
  if (mine.length === 0) {
    return [];
  }
  process.stdout.write(`\n== ${backend}: ${mine.length} attacks\n`);
  const results: Result[] = [];
  let world = await HostileWorld.open(backend);
  const onSignal = () => {
    // Sandboxes outlive the service, and would outlive this program.
    void world.close().finally(() => process.exit(130));
  };
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  // An attack that was given up may still throw: it has its verdict.
  process.on('unhandledRejection', ignoreStray);
  try {
    for (const attack of mine) {
      const before = performance.now();
      const sighting = await attempt(attack, world);
      const result = resultOf(attack, backend, sighting, performance.now() - before);
      process.stdout.write(
        `${result.verdict.padEnd(6)} ${attack.name} (${result.seconds} s): ${result.seen}\n`,
      );
      results.push(result);
      world = await mended(world, sighting instanceof NeverEnded);
    }
  } finally {
    process.off('unhandledRejection', ignoreStray).off('SIGINT', onSignal).off('SIGTERM', onSignal);
    await world.close();
  }
  return results;
}

function ignoreStray(): void {
  // While an attack runs, `attempt` listens as well.
}

/** An attack that fails or never ends has shown nothing. */
async function attempt(attack: Attack, world: HostileWorld): Promise<Sighting | Error> {
  const timeoutMs = attack.timeoutMs ?? ATTACK_TIMEOUT_MS;
  const stray = Promise.withResolvers<Error>();
  const onStray = (reason: unknown) =>
    stray.resolve(new NeverEnded(`it left an error to nobody: ${errorMessage(reason)}`, { cause: reason }));
  process.once('unhandledRejection', onStray);
  try {
    const sighting = await within(timeoutMs, Promise.race([attack.run(world), stray.promise]));
    return sighting ?? new NeverEnded(`it has not ended after ${timeoutMs / 1000} s`);
  } catch (error) {
    return new Error(errorMessage(error), { cause: error });
  } finally {
    process.off('unhandledRejection', onStray);
  }
}

/** The world as it was before the attack; another one where that cannot be had. */
async function mended(world: HostileWorld, isAttacked: boolean): Promise<HostileWorld> {
  if (!isAttacked) {
    try {
      await world.mend();
      return world;
    } catch (error) {
      process.stdout.write(`the world was not to be mended: ${errorMessage(error)}\n`);
    }
  }
  await world.close();
  return HostileWorld.open(world.backend);
}
