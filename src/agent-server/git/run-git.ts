import { existsSync } from 'node:fs';
import type { GitServerCredential } from '../../agent-protocol/git.js';
import { errorCode } from '../../common/errors/error-message.js';
import { OutputWindow } from '../clipped-text.js';
import { runCommand } from '../process-tree.js';
import { gitVariables } from './git-credentials.js';

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT = 20_000_000;

interface GitContext {
  cwd: string;
  environment: Record<string, string>;
  /** Program and arguments put before git. */
  wrapper: readonly string[];
}

/** Runs git in a folder without hooks, pager or editor, and returns its standard output; null when git fails. */
export async function runGit(
  { cwd, environment, wrapper }: GitContext,
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

const MAX_TRUSTED_OUTPUT = 8_000;
const NO_GIT = 'There is no git in this sandbox: its image, or the machine that it runs on, must provide it.';
const TRUSTED_SETTINGS: [string, string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.askPass', ''],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
];

interface TrustedGitOptions {
  args: readonly string[];
  cwd: string;
  /** Variables of any program; no secrets. */
  environment: Record<string, string>;
  credentials: readonly GitServerCredential[];
  /** Further variables of git, for example `GIT_DIR`. */
  variables?: Record<string, string>;
  /** Milliseconds. */
  timeoutMs: number;
  signal?: AbortSignal;
}

export interface GitOutcome {
  ok: boolean;
  timedOut: boolean;
  /** Beginning and end of what git wrote; may hold secrets. */
  output: string;
}

/**
 * Runs git with credentials, where tools cannot see it. Nothing that an agent can write decides what it does: it reads
 * no configuration from the user's home, runs no hook and speaks only http(s). Callers must not run it in a repository
 * that an agent has configured.
 *
 * @throws Error when git is not installed
 */
export async function trustedGit(git: TrustedGitOptions): Promise<GitOutcome> {
  const output = new OutputWindow(MAX_TRUSTED_OUTPUT);
  const { exitCode, timedOut } = await runCommand({
    command: ['git', '--no-pager', ...git.args],
    cwd: git.cwd,
    env: {
      ...git.environment,
      GIT_TERMINAL_PROMPT: '0',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_ALLOW_PROTOCOL: 'http:https',
      // We parse its messages.
      LC_ALL: 'C',
      ...gitVariables({ credentials: [...git.credentials], identity: null }, TRUSTED_SETTINGS),
      ...git.variables,
    },
    timeoutMs: git.timeoutMs,
    ...(git.signal && { signal: git.signal }),
    onOutput: (_, text) => output.push(Buffer.from(text)),
  }).catch((error: unknown) => {
    throw isMissing(error, git.cwd) ? new Error(NO_GIT, { cause: error }) : error;
  });
  return { ok: exitCode === 0, timedOut, output: output.text().trim() };
}

/** Node.js reports a missing program and a missing folder with the same error. */
function isMissing(error: unknown, cwd: string): boolean {
  return errorCode(error) === 'ENOENT' && existsSync(cwd);
}
