import { existsSync } from 'node:fs';
import type { GitCredential } from '../../agent-protocol/git-access.js';
import { describeFailure } from '../failure.js';
import { runCommand } from '../process-tree.js';
import { OutputWindow } from '../tools/output-window.js';
import { gitVariables } from './git-variables.js';

const MAX_OUTPUT = 8_000;
const NO_GIT = 'There is no git in this sandbox: its image, or the machine that it runs on, has to have one.';
const SETTINGS: [string, string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.askPass', ''],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
];

export interface TrustedGit {
  args: readonly string[];
  cwd: string;
  /** Variables of any program; no secrets. */
  environment: Record<string, string>;
  credentials: readonly GitCredential[];
  /** Further variables of git, for example `GIT_DIR`. */
  variables?: Record<string, string>;
  /** Milliseconds. */
  timeoutMs: number;
  signal?: AbortSignal;
}

export interface GitOutcome {
  ok: boolean;
  timedOut: boolean;
  /** Beginning and end of what git wrote; it may hold secrets. */
  output: string;
}

/**
 * Runs git with credentials, outside of what tools can see. Nothing that an agent can write decides what it does: no
 * configuration of the user's home is read, no hook runs, only http(s) is spoken. The caller takes care that it works
 * in no repository that an agent has configured.
 *
 * @throws Error when there is no git
 */
export async function trustedGit(git: TrustedGit): Promise<GitOutcome> {
  const output = new OutputWindow(MAX_OUTPUT);
  const { exitCode, timedOut } = await runCommand({
    command: ['git', '--no-pager', ...git.args],
    cwd: git.cwd,
    env: {
      ...git.environment,
      GIT_TERMINAL_PROMPT: '0',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_ALLOW_PROTOCOL: 'http:https',
      // Its messages are read by us.
      LC_ALL: 'C',
      ...gitVariables({ credentials: [...git.credentials], identity: null }, SETTINGS),
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

/** Node.js says the same of a program and of a folder that is not there. */
function isMissing(error: unknown, cwd: string): boolean {
  return describeFailure(error).code === 'ENOENT' && existsSync(cwd);
}
