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
