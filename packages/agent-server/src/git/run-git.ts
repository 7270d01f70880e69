import { isUtf8 } from 'node:buffer';
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { GitServerCredential, GitAccess } from '@slipway/agent-protocol/git.js';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { OutputWindow } from '../clipped-text.js';
import { commandOutput, runCommand, type RunCommandOptions } from '../process-tree.js';
import { inFolder, type ToolView, VIEW_START, withBytes } from '../tool-view.js';

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT = 20_000_000;
const QUIET_GIT = ['git', '-c', 'safe.directory=*', '-c', 'core.fsmonitor=false', '--no-pager'];

/**
 * Asks git in a folder as tools would, without hooks, pager, editor or credentials; null when that fails. `name`, a
 * text for `printf %b`, is added to the last argument, because our arguments can only be UTF-8.
 */
export async function runGit(
  view: ToolView,
  folder: string,
  args: string[],
  name: string | null = null,
): Promise<string | null> {
  const command = [...QUIET_GIT, ...args];
  const git = {
    // The workspace may belong to another user than the agent server.
    command: inFolder(view, folder, name === null ? command : withBytes(command, name)),
    cwd: VIEW_START,
    env: { ...view.environment, GIT_OPTIONAL_LOCKS: '0', GIT_TERMINAL_PROMPT: '0', LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
  };
  const { exitCode, isCut, output } = await commandOutput(git, MAX_OUTPUT);
  return exitCode === 0 && !isCut ? output : null;
}

/** Returns null if no branch is checked out. Git's own short name of a branch is `heads/x` beside a tag `x`. */
export async function currentBranch(view: ToolView, folder: string): Promise<string | null> {
  const name = await runGit(view, folder, ['symbolic-ref', '--quiet', 'HEAD']);
  return name?.trim().replace(/^refs\/heads\//, '') ?? null;
}

const MAX_OUTCOME = 8_000;
const NO_GIT = 'There is no git in this sandbox: its image, or the machine that it runs on, must provide it.';
const TRUSTED_SETTINGS: [string, string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.askPass', ''],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
];

interface TrustedGitOptions extends Pick<RunCommandOptions, 'timeoutMs' | 'signal' | 'input'> {
  args: readonly string[];
  /** Private, and the home of git as well: no tool writes there. */
  cwd: string;
  environment: Record<string, string>;
  credentials: readonly GitServerCredential[];
  variables?: Record<string, string>;
}

export interface GitOutcome {
  ok: boolean;
  timedOut: boolean;
  /** Beginning and end of what git wrote; may hold secrets. */
  output: string;
}

/**
 * Runs git with credentials, where tools cannot see it: no configuration of the machine or a home, no hooks, no
 * submodules, only http(s). Never run it in a repository that an agent has configured, and let it check out nothing.
 * @throws Error when git is not installed
 */
export async function trustedGit(git: TrustedGitOptions): Promise<GitOutcome> {
  return await outcomeOf({
    command: ['git', '--no-pager', ...git.args],
    cwd: git.cwd,
    env: {
      ...git.environment,
      ...ownConfiguration(git.cwd),
      GIT_TERMINAL_PROMPT: '0',
      GIT_ALLOW_PROTOCOL: 'http:https',
      // We parse its messages.
      LC_ALL: 'C',
      ...gitVariables({ credentials: [...git.credentials], identity: null }, TRUSTED_SETTINGS),
      ...git.variables,
    },
    timeoutMs: git.timeoutMs,
    signal: git.signal,
    input: git.input,
  }).catch((error: unknown) => {
    // Node.js reports a missing program and a missing folder with the same error.
    const isMissing = errorCode(error) === 'ENOENT' && existsSync(git.cwd);
    throw isMissing ? new Error(NO_GIT, { cause: error }) : error;
  });
}

export function failedOutcome(output: string): GitOutcome {
  return { ok: false, timedOut: false, output };
}

export async function outcomeOf(
  program: Omit<RunCommandOptions, 'onOutput'>,
  maxOutput: number = MAX_OUTCOME,
): Promise<GitOutcome> {
  const output = new OutputWindow(maxOutput);
  const { exitCode, timedOut } = await runCommand({
    ...program,
    onOutput: (_, text) => output.push(Buffer.from(text)),
  });
  return { ok: exitCode === 0, timedOut, output: output.text().trim() };
}

/** Keeps git from every configuration but a repository's own. `home` is private: that of tools may hold a `.netrc`. */
export function ownConfiguration(home: string): Record<string, string> {
  return {
    HOME: home,
    XDG_CONFIG_HOME: home,
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
  };
}

/** Shows a name that is not UTF-8 as git does: bytes beyond ASCII in octal, backslashes doubled (`caf\351.txt`). */
export function shownName(name: Buffer): string {
  return isUtf8(name)
    ? name.toString('utf8')
    : Array.from(name, (byte) =>
        byte >= 0x80 ? `\\${byte.toString(8)}` : printable(String.fromCharCode(byte)),
      ).join('');
}

/** A name in the output of git with `core.quotePath`, where names with other than plain characters are in quotes. */
export function parseGitName(text: string): string {
  const [, quoted] = /^"(.*)"$/s.exec(text) ?? [];
  return quoted === undefined ? text : shownName(unquoted(quoted));
}

/** The text that bash's `printf %b` turns into the name. */
export function printable(name: string): string {
  return name.replaceAll('\\', String.raw`\\`);
}

/** A path with a name that may not be UTF-8, as {@link shownName} shows them. */
interface EscapedPath {
  /** The deepest folder above it with nothing but usual names. */
  parent: string;
  /** The rest below that folder, a text for `printf %b`. */
  rest: string;
}

/** Returns null for a path in which nothing is escaped. */
export function parseEscapedPath(file: string): EscapedPath | null {
  const parts = file.split('/');
  const first = parts.findIndex((part) => /^(?:[^\\]|\\\\|\\[23][0-7]{2})*$/.test(part) && BYTE.test(part));
  if (first === -1) {
    return null;
  }
  const rest = parts.slice(first).map((part) => (BYTE.test(part) ? part : printable(part)));
  return { parent: path.normalize(`${parts.slice(0, first).join('/')}/`), rest: rest.join('/') };
}

const BYTE = /\\[23][0-7]{2}/;

/** The letters of C's backslash escapes. */
const CONTROLS: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13 };

function unquoted(text: string): Buffer {
  const bytes = Array.from(text.matchAll(/\\([0-7]{3}|.)|[^\\]+/gs), ([plain, code]) => {
    if (code === undefined) {
      return Buffer.from(plain, 'utf8');
    }
    return code.length === 3
      ? Buffer.of(Number.parseInt(code, 8))
      : Buffer.of(CONTROLS[code] ?? code.charCodeAt(0));
  });
  return Buffer.concat(bytes);
}

/**
 * Variables that give git its user's name and credentials, each for its own server only; credential helpers of files
 * are skipped for that server. No file, argument or address holds the credentials.
 * @see git-config(1), "GIT_CONFIG_COUNT"; gitcredentials(7)
 */
export function gitVariables(
  { credentials, identity }: Pick<GitAccess, 'credentials' | 'identity'>,
  settings: readonly [string, string][] = [],
): Record<string, string> {
  const helpers = credentials.flatMap(({ origin, password, bearer }, index): [string, string][] => [
    // An empty helper drops those before it, our own for the same server included: the last one given counts.
    [`credential.${origin}.helper`, ''],
    [`credential.${origin}.helper`, helperFor(index)],
    ...(bearer === undefined ? [] : bearerHeader(bearer, password)),
  ]);
  const names = Object.entries(identity ?? {}).map(([name, value]): [string, string] => [
    `user.${name}`,
    value,
  ]);
  const values = credentials.flatMap(({ username, password }, index) => [
    [`${USERNAME}${index}`, username],
    [`${PASSWORD}${index}`, password],
  ]);
  return { ...configVariables([...settings, ...helpers, ...names]), ...Object.fromEntries(values) };
}

/** An empty one drops those before it, too. */
function bearerHeader(address: string, token: string): [string, string][] {
  const name = `http.${address}.extraHeader`;
  return [
    [name, ''],
    [name, `Authorization: Bearer ${token}`],
  ];
}

/** Those that programs of the agent get. */
export function shellCredentials({ credentials, expose }: GitAccess): GitServerCredential[] {
  return expose ? credentials.filter(({ repository }) => repository === undefined) : [];
}

/** Texts to mask. Servers receive name and password in one piece, mostly in base64. */
export function gitSecrets(credentials: readonly GitServerCredential[]): string[] {
  return credentials.flatMap(({ username, password }) => [password, `${username}:${password}`]);
}

/** Configuration that overrides that of all files. */
function configVariables(entries: readonly [string, string][]): Record<string, string> {
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return variables.length === 0
    ? {}
    : { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(variables) };
}

const USERNAME = 'SLIPWAY_GIT_USERNAME_';
const PASSWORD = 'SLIPWAY_GIT_PASSWORD_';

function helperFor(index: number): string {
  const print = `printf 'username=%s\\npassword=%s\\n' "$${USERNAME}${index}" "$${PASSWORD}${index}"`;
  return `!f() { if [ "$1" = get ]; then ${print}; fi; }; f`;
}
