import { pipeline } from 'node:stream/promises';
import { OutputWindow } from '../clipped-text.js';
import { runCommand, startProcess } from '../process-tree.js';
import { scriptInView, type ToolView, VIEW_START } from '../tool-view.js';
import type { PrivateRepository } from './private-repository.js';
import type { GitOutcome } from './run-git.js';

const MAX_OUTPUT = 8_000;

interface ViewScript {
  script: string;
  args: readonly string[];
  timeoutMs: number;
  signal?: AbortSignal;
  /** Characters of output that are kept. */
  maxOutput?: number;
}

/** Runs a script of bash as tools would, without any credentials and without fetching files from a Git LFS server. */
export async function runInView(view: ToolView, options: ViewScript): Promise<GitOutcome> {
  const output = new OutputWindow(options.maxOutput ?? MAX_OUTPUT);
  const { exitCode, timedOut } = await runCommand({
    command: scriptInView(view, options.script, options.args),
    cwd: VIEW_START,
    env: viewVariables(view),
    timeoutMs: options.timeoutMs,
    ...(options.signal && { signal: options.signal }),
    onOutput: (_, text) => output.push(Buffer.from(text)),
  });
  return { ok: exitCode === 0, timedOut, output: output.text().trim() };
}

/**
 * Hands what a private repository has received to a script in the view, as tar on its standard input: `objects`,
 * `packed-refs` if there is one, or `lfs`.
 */
export async function handOver(
  repository: PrivateRepository,
  members: readonly ('objects' | 'packed-refs' | 'lfs')[],
  view: ToolView,
  { script, args, timeoutMs, signal }: ViewScript,
): Promise<GitOutcome> {
  // `objects/info` only points to the agent's own objects, so the agent's repository has no use for it.
  const archive = ['tar', '-cf', '-', '-C', repository.gitDir, '--exclude=objects/info', ...members];
  const output = new OutputWindow(MAX_OUTPUT);
  const sender = await startProcess({ command: archive, cwd: VIEW_START, env: view.environment }, [
    'ignore',
    'pipe',
    'ignore',
  ]);
  const receiver = await startProcess(
    { command: scriptInView(view, script, args), cwd: VIEW_START, env: viewVariables(view) },
    ['pipe', 'pipe', 'pipe'],
  );
  const processes = [sender, receiver];
  let timedOut = false;
  const end = (): void => processes.forEach(({ kill }) => void kill());
  const timer = setTimeout(() => {
    timedOut = true;
    end();
  }, timeoutMs);
  signal?.addEventListener('abort', end, { once: true });
  try {
    receiver.child.stdout?.on('data', (chunk: Buffer) => output.push(chunk));
    receiver.child.stderr?.on('data', (chunk: Buffer) => output.push(chunk));
    const { stdout } = sender.child;
    const { stdin } = receiver.child;
    if (stdout === null || stdin === null) {
      throw new TypeError('the archive has no reader');
    }
    // A script that fails reads no further, and its exit code says so.
    const [, sent, received] = await Promise.all([
      pipeline(stdout, stdin).catch(() => undefined),
      sender.exited,
      receiver.exited,
    ]);
    return { ok: received === 0 && sent === 0, timedOut, output: output.text().trim() };
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
    await Promise.all(processes.map(async ({ kill }) => await kill()));
  }
}

function viewVariables({ environment }: ToolView): Record<string, string> {
  return {
    ...environment,
    GIT_TERMINAL_PROMPT: '0',
    // Large files would be fetched from the server, without credentials: the agent may do so later.
    GIT_LFS_SKIP_SMUDGE: '1',
    LC_ALL: 'C',
  };
}
