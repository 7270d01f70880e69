import path from 'node:path';
import { lstat, mkdir, rename, symlink } from 'node:fs/promises';
import { errorCode, unlessCode } from '@slipway/common/errors/error-message.js';
import { log } from './observability.js';
import type { Program } from './process-tree.js';

/**
 * How to run programs that see only what tools see. Everything that opens a path of the workspace, or reads what
 * tools wrote, uses it: a path may change after a check, but no program can be led to what it cannot see.
 */
export interface ToolView {
  /** Variables of every program; no secret of the agent server. */
  environment: Record<string, string>;
  /** Program and arguments that isolate every other program. Empty: tools see what the agent server sees. */
  wrapper: readonly string[];
  aliases?: readonly PathAlias[];
}

/** The folder that programs of the view start in, because all views have it. */
export const VIEW_START = '/';

const NO_FOLDER = 126;
/** The flags keep the shell from reading files because of variables, the home or a socket as standard input. */
const SHELL = ['bash', '--noprofile', '--norc', '-pc'];

/** The command that runs another one in a folder of the view, after a `prelude` of bash; start it in `VIEW_START`. */
export function inFolder(
  { wrapper }: ToolView,
  folder: string,
  command: readonly string[],
  prelude = '',
): string[] {
  const script = `cd -- "$1" || exit ${NO_FOLDER}; shift; ${prelude} exec "$@"`;
  return [...wrapper, ...SHELL, script, 'enter', folder, ...command];
}

const ADD_BYTES = [...SHELL, 'printf -v bytes %b "$1"; shift; exec "${@:1:$#-1}" "${!#}$bytes"', 'bytes'];

/** The command that runs another one whose last argument goes on with what `printf %b` makes of a text. */
export function withBytes(command: readonly string[], text: string): string[] {
  return [...ADD_BYTES, text, ...command];
}

/** A path from a model, with `~` as its shell reads it: `rm -r ~` would not remove a folder of that name, but the home. */
export function withHome({ environment }: ToolView, file: string): string {
  return file.replace(/^~(?=\/|$)/, (tilde) => environment['HOME'] ?? tilde);
}

/** A script of bash in the view. File names are bytes, and are sorted as bytes. */
export function scriptInView(
  { wrapper, environment }: ToolView,
  script: string,
  args: readonly string[],
): Program {
  const command = [...wrapper, ...SHELL, script, 'script', ...args];
  return { command, cwd: VIEW_START, env: { ...environment, LC_ALL: 'C' } };
}

const INHERITED_VARIABLES =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|JAVA_TOOL_OPTIONS|(HTTPS?|NO|ALL)_PROXY|NODE_USE_ENV_PROXY|XDG_[A-Z_]+|SLIPWAY_SANDBOX)$/i;

/** Variables of programs that do not read `SSL_CERT_FILE`, or read these first, for the same file. */
export const CERTIFICATE_VARIABLES = [
  'GIT_SSL_CAINFO',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'NODE_EXTRA_CA_CERTS',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
  'HEX_CACERTS_PATH',
  'DENO_CERT',
];

/** Lists the names of further variables for tools, such as the ports that they may use. */
const EXTRA_VARIABLES = 'SLIPWAY_TOOL_VARIABLES';

// Lists the variables that were set when the container was started. All others are the image's own, such as
// `JAVA_HOME`, and tools get them. Without this list, the image's variables are unknown.
const SERVICE_VARIABLES = 'SLIPWAY_SERVICE_VARIABLES';
/** Variables that tools never get: those of the agent server itself, and those that may be secret. */
const WITHHELD_VARIABLES = /^(NODE_|LD_|OH_|SLIPWAY_)|KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i;
/** Variables that a container engine or a cluster adds. */
const ENGINE_VARIABLES = /^(HOSTNAME$|KUBERNETES_)/;

/**
 * The variables that child processes inherit: an allowlist of what programs need, and those of the container's
 * image, never a secret. `SLIPWAY_SANDBOX` names the sandbox, so that its processes are found when it ends.
 */
export function toolEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const named = new Set((own[EXTRA_VARIABLES] ?? '').split(','));
  const isOfImage = imageVariables(own);
  const inherited = Object.entries(own).flatMap(([name, value]) =>
    value !== undefined && (INHERITED_VARIABLES.test(name) || named.has(name) || isOfImage(name))
      ? [[name, value] as const]
      : [],
  );
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    // Without any, Java cannot open files by their names, and Ruby and Haskell not read them, but in ASCII.
    LANG: 'C.UTF-8',
    ...Object.fromEntries(
      own['SSL_CERT_FILE'] ? CERTIFICATE_VARIABLES.map((name) => [name, own['SSL_CERT_FILE'] ?? '']) : [],
    ),
    ...Object.fromEntries(inherited),
    // No user can answer a prompt, or quit a pager or an editor.
    GIT_TERMINAL_PROMPT: '0',
    GIT_PAGER: 'cat',
    PAGER: 'cat',
    GIT_EDITOR: 'true',
    EDITOR: 'true',
  };
}

function imageVariables(own: NodeJS.ProcessEnv): (name: string) => boolean {
  const list = own[SERVICE_VARIABLES];
  if (list === undefined) {
    return () => false;
  }
  const service = new Set(list.split(','));
  return (name) => !service.has(name) && !WITHHELD_VARIABLES.test(name) && !ENGINE_VARIABLES.test(name);
}

/** Another name that clients know a folder by. Both are absolute; the folder's own name is the one that tools see. */
export interface PathAlias {
  name: string;
  folder: string;
}

/** The path that tools would use; it only compares texts, and the view of tools decides what may be used. */
export function resolvePath(aliases: readonly PathAlias[], base: string, given: string): string {
  const absolute = path.resolve('/', base, given);
  if (aliases.some(({ folder }) => isInside(absolute, folder))) {
    return absolute;
  }
  const matching = aliases.filter(({ name }) => isInside(absolute, name));
  const [closest] = matching.toSorted((a, b) => b.name.length - a.name.length);
  return closest === undefined ? absolute : path.join(closest.folder, path.relative(closest.name, absolute));
}

/** Reads `NAME=FOLDER`. @throws TypeError */
export function parseAlias(text: string): PathAlias {
  const [name, folder] = absolutePair(text, '=', '--alias must be NAME=FOLDER, both absolute');
  return { name, folder };
}

function absolutePair(text: string, separator: string, problem: string): [string, string] {
  const [first = '', second = '', ...rest] = text.split(separator);
  if (!path.isAbsolute(first) || !path.isAbsolute(second) || rest.length > 0) {
    throw new TypeError(problem);
  }
  return [path.resolve(first), path.resolve(second)];
}

function isInside(file: string, folder: string): boolean {
  return file === folder || file.startsWith(folder === '/' ? folder : `${folder}/`);
}

/** A folder with two names, because the volume that it is in is mounted twice. */
export interface WorkspaceName {
  /** Path of the folder in the same mount as the configured workspace. */
  folder: string;
  name: string;
}

/**
 * Gives the workspace the name that clients assume, and returns the options that change. A moved workspace leaves a
 * link, because scripts may have its old path; one that cannot be moved gets an alias.
 */
export async function nameWorkspace(
  workspace: string,
  { folder, name }: WorkspaceName,
): Promise<{ workspace: string; aliases: PathAlias[]; fileRoots: string[] }> {
  const parent = path.dirname(name);
  if (!isInside(workspace, folder) && !(await moveTo(workspace, folder))) {
    return { workspace, aliases: [{ name, folder: workspace }], fileRoots: [parent] };
  }
  const named = isInside(workspace, folder) ? path.join(name, path.relative(folder, workspace)) : name;
  return { workspace: named, aliases: [{ name: workspace, folder: named }], fileRoots: [parent, folder] };
}

/** @returns whether the folder is there, and its old name leads to it */
async function moveTo(from: string, to: string): Promise<boolean> {
  if (isInside(to, from)) {
    return false;
  }
  const [old, current] = await Promise.all([kindOf(from), kindOf(to)]);
  if (old === 'folder' && current !== null) {
    log('warn', 'failed to rename workspace', { from, to, error: 'the name is taken' });
    return false;
  }
  try {
    if (old === 'folder') {
      await rename(from, to);
    } else {
      await mkdir(to, { recursive: true });
    }
    if (old !== 'link') {
      await mkdir(path.dirname(from), { recursive: true });
      await symlink(path.relative(path.dirname(from), to), from);
    }
    return true;
  } catch (error) {
    log('warn', 'failed to rename workspace', { from, to, error: errorCode(error) });
    return (await kindOf(from)) !== 'folder';
  }
}

async function kindOf(file: string): Promise<'folder' | 'link' | 'other' | null> {
  const found = await unlessCode('ENOENT', lstat(file));
  return found && (found.isDirectory() ? 'folder' : found.isSymbolicLink() ? 'link' : 'other');
}

/** Reads `FOLDER:NAME`; null for nothing. @throws TypeError */
export function parseWorkspaceName(text: string | undefined): WorkspaceName | null {
  if (!text) {
    return null;
  }
  const problem = 'SLIPWAY_WORKSPACE_NAME must be FOLDER:NAME, both absolute';
  const [folder, name] = absolutePair(text, ':', problem);
  return { folder, name };
}
