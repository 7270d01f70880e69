import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { inheritedEnvironment } from '../../support/service-process.js';
import type { Steps } from './steps.js';

const TIMEOUT_MS = 600_000;
const LINES_SHOWN = 6;

/** Of all Python programs here: no other machine is asked, and nothing is written beside the sources. */
const ENVIRONMENT = {
  OPENHANDS_SUPPRESS_BANNER: '1',
  LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  PYTHONDONTWRITEBYTECODE: '1',
};

/**
 * Runs a Python program that prints a line of JSON for each step, `{"step", "verdict", "seen"}`, and takes them over.
 * A program that ends with an error, or too late, is a failed step of its own.
 */
export async function pythonSteps(options: {
  steps: Steps;
  python: string;
  program: string;
  args: readonly string[];
  environment?: Record<string, string>;
}): Promise<void> {
  const { steps, python, program, args } = options;
  const child = spawn(python, ['-u', program, ...args], {
    env: {
      ...inheritedEnvironment(),
      ...(process.env['LD_LIBRARY_PATH'] !== undefined && {
        LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'],
      }),
      ...ENVIRONMENT,
      ...options.environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const rest: string[] = [];
  let before = performance.now();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const result = parseJson(line);
    const step = jsonText(result, 'step');
    if (step === null) {
      rest.push(line);
      return;
    }
    const now = performance.now();
    steps.add(
      {
        step,
        seen: jsonText(result, 'seen') ?? '',
        verdict: jsonText(result, 'verdict') === 'passed' ? 'passed' : 'FAILED',
      },
      now - before,
    );
    before = now;
  });
  createInterface({ input: child.stderr }).on('line', (line) => rest.push(line));
  const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
  await once(child, 'close');
  clearTimeout(timer);
  if (child.exitCode !== 0) {
    const seen = `ended with ${child.exitCode ?? child.signalCode}: ${rest.slice(-LINES_SHOWN).join(' ')}`;
    steps.add({ step: 'the program goes through to its end', seen, verdict: 'FAILED' });
  }
}
