import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import type { EngineSettings } from '../../src/engine/agent-engine.js';
import { finalAnswer } from '../../src/engine/agent-events.js';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';

const run = promisify(execFile);
const MAX_STEPS = 20;
const TOOL_SERVER = path.resolve(import.meta.dirname, '../fakes/mcp-servers/scripted-stdio-server.mjs');

export interface ModelTask {
  name: string;
  /** What the user says, one message after the other. */
  messages: string[];
  files?: Record<string, string>;
  usesToolServer?: boolean;
  isDone: (work: { folder: string; answer: string; host: MemoryEngineHost }) => Promise<boolean>;
}

export interface TaskResult {
  name: string;
  isDone: boolean;
  steps: number;
  tokens: number;
  seconds: number;
  /** What went wrong, or how it ended. */
  end: string;
}

const textOf = async (folder: string, name: string): Promise<string> =>
  existsSync(path.join(folder, name)) ? (await readFile(path.join(folder, name), 'utf8')).trim() : '';

/** Small, and each of another kind; whether one is done is seen in the files or in the answer, not in words about it. */
export const MODEL_TASKS: readonly ModelTask[] = [
  {
    name: 'make a file',
    messages: ['Make a file hello.txt in the workspace whose only text is: hello'],
    isDone: async ({ folder }) => (await textOf(folder, 'hello.txt')) === 'hello',
  },
  {
    name: 'change a word',
    messages: ['In greeting.txt, replace the word old by the word new. Change nothing else.'],
    files: { 'greeting.txt': 'This is an old file.\nIt has two lines.\n' },
    isDone: async ({ folder }) =>
      (await textOf(folder, 'greeting.txt')) === 'This is an new file.\nIt has two lines.',
  },
  {
    name: 'mend a test',
    messages: ['`node sum.test.mjs` fails. Find the mistake in sum.mjs and mend it.'],
    files: {
      'sum.mjs': 'export function sum(a, b) {\n  return a - b;\n}\n',
      'sum.test.mjs': "import { sum } from './sum.mjs';\nif (sum(2, 3) !== 5) {\n  process.exit(1);\n}\n",
    },
    isDone: async ({ folder }) =>
      await run(process.execPath, ['sum.test.mjs'], { cwd: folder }).then(
        () => true,
        () => false,
      ),
  },
  {
    name: 'find a name',
    messages: ['In which file is the function zebraCrossing defined? Answer with its path.'],
    files: {
      'src/a.js': 'zebraCrossing();\n',
      'src/deep/er/walk.js': 'export function zebraCrossing() {}\n',
      'src/b.js': '// zebra\n',
    },
    isDone: async ({ answer }) => await Promise.resolve(answer.includes('src/deep/er/walk.js')),
  },
  {
    name: 'count lines',
    messages: ['How many lines does data.csv have? Answer with the number.'],
    files: { 'data.csv': 'a,b\n'.repeat(137) },
    isDone: async ({ answer }) => await Promise.resolve(/\b137\b/.test(answer)),
  },
  {
    name: 'run a program',
    messages: ['Run `node secret.mjs` and write what it prints into answer.txt.'],
    files: { 'secret.mjs': 'console.log(6 * 7 * 11);\n' },
    isDone: async ({ folder }) => (await textOf(folder, 'answer.txt')) === '462',
  },
  {
    name: 'move a file',
    messages: ['Rename first.txt to second.txt.'],
    files: { 'first.txt': 'kept\n' },
    isDone: async ({ folder }) =>
      (await textOf(folder, 'second.txt')) === 'kept' && !existsSync(path.join(folder, 'first.txt')),
  },
  {
    name: 'edit JSON',
    messages: ['Set the version in package.json to 1.2.3.'],
    files: { 'package.json': '{\n  "name": "app",\n  "version": "1.0.0"\n}\n' },
    isDone: async ({ folder }) => {
      const found = parseJson(await textOf(folder, 'package.json'));
      return jsonText(found, 'version') === '1.2.3' && jsonText(found, 'name') === 'app';
    },
  },
  {
    name: 'use a tool server',
    messages: ['Call the tool act once, then say that you did.'],
    usesToolServer: true,
    isDone: async ({ host }) =>
      await Promise.resolve(host.ofKind('ObservationEvent').some(({ tool_name: name }) => name === 'act')),
  },
  {
    name: 'remember',
    messages: ['My number is 7319. Say yes, and do nothing else.', 'What is my number?'],
    isDone: async ({ answer }) => await Promise.resolve(answer.includes('7319')),
  },
];

/** Does a task in a folder of its own; whatever takes too long is ended. */
export async function tryTask(
  task: ModelTask,
  llm: EngineSettings['llm'],
  limitMs: number,
): Promise<TaskResult> {
  const folder = await mkdtemp(path.join(tmpdir(), 'model-task-'));
  for (const [name, text] of Object.entries(task.files ?? {})) {
    await mkdir(path.dirname(path.join(folder, name)), { recursive: true });
    await writeFile(path.join(folder, name), text);
  }
  const near = { command: process.execPath, args: [TOOL_SERVER] };
  const mcpConfig = task.usesToolServer === true ? { near } : null;
  const host = new MemoryEngineHost(
    engineSettings(folder, '', { llm, maxIterations: MAX_STEPS, mcpConfig, llmTimeoutMs: limitMs }),
  );
  const engine = new NativeEngine();
  const begin = performance.now();
  const signal = AbortSignal.timeout(limitMs);
  try {
    for (const message of task.messages) {
      await host.say(message);
      await engine.run(host, signal);
    }
    const isDone = await task.isDone({ folder, answer: finalAnswer(host.events()), host });
    const code = host.ofKind('ConversationErrorEvent').at(-1)?.code;
    return {
      name: task.name,
      isDone,
      steps: host.usage.length,
      tokens: host.usage.reduce((sum, usage) => sum + usage.promptTokens + usage.completionTokens, 0),
      seconds: Math.round((performance.now() - begin) / 1_000),
      end: signal.aborted ? 'out of time' : [host.status, code].filter(Boolean).join(', '),
    };
  } finally {
    await engine.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Prints a table in Markdown, as in docs/quality.md. */
export function resultTable(results: readonly TaskResult[]): string[] {
  return [
    '| task | done | steps | tokens | seconds | end |',
    '| --- | --- | --- | --- | --- | --- |',
    ...results.map(
      ({ name, isDone, steps, tokens, seconds, end }) =>
        `| ${[name, isDone ? 'yes' : 'no', steps, tokens, seconds, end].join(' | ')} |`,
    ),
  ];
}
