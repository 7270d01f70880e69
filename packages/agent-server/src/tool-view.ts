import type { PathAlias } from './path-aliases.js';

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

/** Where programs of the view start: a folder that is in all views. */
export const VIEW_START = '/';

const NO_FOLDER = 126;
/** Without the flags, variables, the home or a socket as standard input would make the shell read further files. */
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
export function withHome({ environment }: ToolView, path: string): string {
  return path.replace(/^~(?=\/|$)/, (tilde) => environment['HOME'] ?? tilde);
}

interface ViewProgram {
  command: string[];
  cwd: string;
  env: Record<string, string>;
}

/** A script of bash in the view. File names are bytes, and are sorted as bytes. */
export function scriptInView(
  { wrapper, environment }: ToolView,
  script: string,
  args: readonly string[],
): ViewProgram {
  const command = [...wrapper, ...SHELL, script, 'script', ...args];
  return { command, cwd: VIEW_START, env: { ...environment, LC_ALL: 'C' } };
}

const INHERITED_VARIABLES =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LANGUAGE|LC_[A-Z]+|SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|JAVA_TOOL_OPTIONS|(HTTPS?|NO|ALL)_PROXY|NODE_USE_ENV_PROXY|XDG_[A-Z_]+|SLIPWAY_SANDBOX)$/i;

/** Of programs that do not read `SSL_CERT_FILE`, or these first, for the same file. */
export const CERTIFICATE_VARIABLES = [
  'GIT_SSL_CAINFO',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'NODE_EXTRA_CA_CERTS',
  'AWS_CA_BUNDLE',
  'CARGO_HTTP_CAINFO',
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
