import { existsSync } from 'node:fs';
import type { GitAccess, GitCredential } from '../../agent-protocol/git.js';
import { describeFailure } from '../log.js';
import { runCommand } from '../process-tree.js';
import { OutputWindow } from '../tools/shell-session.js';

/**
 * Variables by which git finds credentials, and its user's name. Each credential is for its own server only; helpers
 * that any file configures for that server are not asked. Whoever may read the environment of the git process may read
 * the credentials: nothing else holds them, no file, no argument, no address.
 *
 * @param settings further configuration
 * @see git-config(1), "GIT_CONFIG_COUNT"; gitcredentials(7)
 */
export function gitVariables(
  { credentials, identity }: Pick<GitAccess, 'credentials' | 'identity'>,
  settings: readonly [string, string][] = [],
): Record<string, string> {
  const helpers = credentials.flatMap(({ origin }, index): [string, string][] => [
    // An empty one forgets those before it, also our own for the same server: the last one given counts.
    [`credential.${origin}.helper`, ''],
    [`credential.${origin}.helper`, helperFor(index)],
  ]);
  const names: [string, string][] =
    identity === null
      ? []
      : [
          ['user.name', identity.name],
          ['user.email', identity.email],
        ];
  const values = credentials.flatMap(valuesFor);
  return { ...configVariables([...settings, ...helpers, ...names]), ...Object.fromEntries(values) };
}

/** Configuration that goes before that of all files. */
function configVariables(entries: readonly [string, string][]): Record<string, string> {
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return variables.length === 0
    ? {}
    : { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(variables) };
}

/** What in it must not be seen; servers get name and password in one piece, mostly in base64. */
export function gitSecrets(credentials: readonly GitCredential[]): string[] {
  return credentials.flatMap(({ username, password }) => [password, `${username}:${password}`]);
}

function helperFor(index: number): string {
  const answer = `printf 'username=%s\\npassword=%s\\n' "$${userVariable(index)}" "$${passwordVariable(index)}"`;
  return `!f() { if [ "$1" = get ]; then ${answer}; fi; }; f`;
}

function valuesFor({ username, password }: GitCredential, index: number): [string, string][] {
  return [
    [userVariable(index), username],
    [passwordVariable(index), password],
  ];
}

function userVariable(index: number): string {
  return `SLIPWAY_GIT_USERNAME_${index}`;
}

function passwordVariable(index: number): string {
  return `SLIPWAY_GIT_PASSWORD_${index}`;
}

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT = 20_000_000;

interface GitSurroundings {
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

const TRUSTED_GIT_MAX_OUTPUT = 8_000;
const NO_GIT = 'There is no git in this sandbox: its image, or the machine that it runs on, has to have one.';
const SETTINGS: [string, string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.askPass', ''],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
];

interface TrustedGit {
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
  const output = new OutputWindow(TRUSTED_GIT_MAX_OUTPUT);
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
