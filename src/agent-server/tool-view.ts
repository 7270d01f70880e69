import type { PathAlias } from './path-aliases.js';

/**
 * How programs are run that see what tools see, and nothing else: for whatever opens a path of the workspace or reads
 * what tools have written there. A path that is checked here and opened there may have become another one in between;
 * what the whole program cannot see, it cannot be led to.
 */
export interface ToolView {
  /** Variables of every program; no secret of the agent server. */
  environment: Record<string, string>;
  /** Program and arguments put before every other, which isolate it. Empty: tools see what the agent server sees. */
  wrapper: readonly string[];
  /** Other names of folders in it, which clients and models may use. */
  aliases?: readonly PathAlias[];
}

/** Where programs of the view start: a folder that is in all views. */
export const VIEW_START = '/';

const NO_FOLDER = 126;
/** Neither a variable nor a home makes the shell read further files; it would where its standard input is a socket. */
const SHELL = ['bash', '--noprofile', '--norc', '-pc'];
const ENTER_FOLDER = [...SHELL, `cd -- "$1" || exit ${NO_FOLDER}; shift; exec "$@"`, 'enter'];

/** The command that runs another one in a folder of the view, to be started in `VIEW_START`. */
export function inFolder({ wrapper }: ToolView, folder: string, command: readonly string[]): string[] {
  return [...wrapper, ...ENTER_FOLDER, folder, ...command];
}

/** The command that runs a script of bash in the view, to be started in `VIEW_START`. */
export function scriptInView({ wrapper }: ToolView, script: string, args: readonly string[]): string[] {
  return [...wrapper, ...SHELL, script, 'script', ...args];
}
