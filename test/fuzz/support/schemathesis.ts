import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { ClientCache } from '../../clients/support/client-cache.js';
import { inheritedEnvironment } from '../../support/service-process.js';
import type { FuzzTarget } from '../fuzz-target.js';

const VERSION = '4.32.5';
/** The oldest minor version that has been tried: that of Debian 12. */
const PYTHON_3 = 11;
const HOOKS = fileURLToPath(new URL('../hooks.py', import.meta.url));
const LINES_SHOWN = 30;
/** Of one request; starts of conversations that are streamed take longest. */
const REQUEST_SECONDS = 30;
/** Ended with failures, as opposed to: not run at all. */
const EXIT_WITH_FAILURES = 1;

const reportSchema = z.object({
  answers: z.array(z.object({ operation: z.string(), status: z.number(), count: z.number() })),
  failures: z.array(
    z.object({
      operation: z.string(),
      check: z.string(),
      status: z.number(),
      message: z.string(),
      request: z.string(),
      answer: z.string(),
      count: z.number(),
    }),
  ),
  wanted: z.array(z.number()),
});
type Written = z.infer<typeof reportSchema>;

/** What a run came to: answers by operation and status, each kind of failure once, and how often each exception applied. */
export interface FuzzReport extends Written {
  /** Whether it took too long, and was stopped. */
  cut: boolean;
}

/** Parts of a run of Schemathesis. */
export type Phase = 'examples' | 'coverage' | 'fuzzing' | 'stateful';

export interface RunOptions {
  phases: readonly Phase[];
  /** Generated for each operation, and sequences of requests for all of them together. */
  maxExamples: number;
  seed: number;
  /** Operations whose name, such as `GET /alive`, has it in it; null: all. */
  only: string | null;
  /** After this time it is stopped, with what it has found. */
  maxSeconds: number;
}

/** Generates requests from an OpenAPI document and compares the answers with it: a Python program of others. */
export class Schemathesis {
  private constructor(
    private readonly program: string,
    private readonly print: (line: string) => void,
  ) {}

  /** @throws NotInstallable where the machine cannot have it */
  static async install(cache: ClientCache, print: (line: string) => void): Promise<Schemathesis> {
    const programs = await cache.pythonPackages('schemathesis', [`schemathesis==${VERSION}`], PYTHON_3);
    return new Schemathesis(path.join(programs, 'schemathesis'), print);
  }

  /** @throws Error with its last lines when it has not run */
  async run(target: FuzzTarget, options: RunOptions): Promise<FuzzReport> {
    const folder = await mkdtemp(path.join(tmpdir(), 'slipway-fuzz-'));
    try {
      const [config, plan, report] = ['schemathesis.toml', 'plan.json', 'report.json'].map((name) =>
        path.join(folder, name),
      ) as [string, string, string];
      await writeFile(config, configuration(target));
      await writeFile(plan, JSON.stringify({ ...planOf(target), report }));
      const { code, lines, cut } = await this.spawn(
        folder,
        argumentsOf(config, target, options),
        { FUZZ_PLAN: plan, FUZZ_API_KEY: target.key },
        options.maxSeconds,
      );
      if (!cut && code !== 0 && code !== EXIT_WITH_FAILURES) {
        throw new Error(`Schemathesis ended with ${code}:\n${lines.slice(-LINES_SHOWN).join('\n')}`);
      }
      const errors = lines.findIndex((line) => /^=+ ERRORS =+$/.test(line));
      if (errors !== -1) {
        throw new Error(lines.slice(errors, errors + LINES_SHOWN).join('\n'));
      }
      return { ...reportSchema.parse(JSON.parse(await readFile(report, 'utf8'))), cut };
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    }
  }

  private async spawn(
    cwd: string,
    args: readonly string[],
    environment: Record<string, string>,
    maxSeconds: number,
  ): Promise<{ code: number | null; lines: string[]; cut: boolean }> {
    const child = spawn(this.program, args, {
      cwd,
      env: {
        ...inheritedEnvironment(),
        PYTHONDONTWRITEBYTECODE: '1',
        SCHEMATHESIS_HOOKS: HOOKS,
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    const lines: string[] = [];
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        this.print(line);
      });
    }
    let cut = false;
    const timer = setTimeout(() => {
      cut = true;
      // As Ctrl-C does: it ends in order, and writes its report.
      child.kill('SIGINT');
    }, maxSeconds * 1000);
    await once(child, 'close');
    clearTimeout(timer);
    process.off('exit', kill);
    return { code: child.exitCode, lines, cut };
  }
}

function argumentsOf(config: string, target: FuzzTarget, options: RunOptions): string[] {
  return [
    `--config-file=${config}`,
    'run',
    target.document,
    `--url=${target.url}`,
    `--phases=${options.phases.join(',')}`,
    `--checks=${target.checks.join(',')}`,
    `--max-examples=${options.maxExamples}`,
    `--seed=${options.seed}`,
    ...(options.only === null ? [] : [`--include-name-regex=${literally(options.only)}`]),
    // One after the other: a seed then gives the same order, and threads break the parser of Python 3.11.
    '--workers=1',
    '--continue-on-failure',
    '--no-shrink',
    '--warnings=off',
    '--no-color',
    // Everything is made up, and what repeats a failure has to be whole.
    '--output-sanitize=false',
  ];
}

/** A regular expression for a text and nothing else. */
function literally(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
}

/** The rest of what Schemathesis is told: TOML, whose texts and lists are those of JSON. */
function configuration(target: FuzzTarget): string {
  const statuses = (...values: string[]): string => `expected-statuses = ${JSON.stringify(values)}`;
  return [
    `request-timeout = ${REQUEST_SECONDS}`,
    // Streams go on for as long as a conversation does.
    'max-stream-events = 1',
    '[cache]',
    'enabled = false',
    '[generation]',
    'database = "none"',
    '[headers]',
    'X-Session-API-Key = "${FUZZ_API_KEY}"',
    '[checks.positive_data_acceptance]',
    statuses('2xx', '3xx', ...target.refusals.map(String)),
    '',
  ].join('\n');
}

function planOf({ wanted, kept, bodies }: FuzzTarget): object {
  return {
    wanted: wanted.map((one) => ({ statuses: [], answer: '', message: '', flags: false, ...one })),
    kept,
    bodies,
  };
}
