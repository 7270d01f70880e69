import { runCommand } from '../process-tree.js';

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT = 20_000_000;

export interface GitSurroundings {
  cwd: string;
  environment: Record<string, string>;
  /** Program and arguments put before git. */
  wrapper: readonly string[];
}

/** Standard output of a git command in a folder; null when git failed. Runs no hook, pager or editor. */
export async function runGit(
  { cwd, environment, wrapper }: GitSurroundings,
  args: string[],
): Promise<string | null> {
  const output: string[] = [];
  let size = 0;
  const aborter = new AbortController();
  const { exitCode } = await runCommand({
    // The workspace may belong to another user than the agent server.
    command: [
      ...wrapper,
      'git',
      '-c',
      'safe.directory=*',
      '-c',
      'core.fsmonitor=false',
      '--no-pager',
      ...args,
    ],
    cwd,
    env: { ...environment, GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
    signal: aborter.signal,
    onOutput: (stream, text) => {
      if (stream === 'stdout') {
        size += text.length;
        if (size > MAX_OUTPUT) {
          aborter.abort();
          return;
        }
        output.push(text);
      }
    },
  });
  return exitCode === 0 ? output.join('') : null;
}
