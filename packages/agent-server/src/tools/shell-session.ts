import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import path from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { SETUP_ENVIRONMENT } from '@slipway/agent-protocol/git.js';
import { OutputWindow } from '../clipped-text.js';
import { TerminalScreen } from './terminal-screen.js';
import { Writable } from 'node:stream';
import { CommandProcesses, findShell } from './command-processes.js';
import { within } from '@slipway/common/async.js';
import { readToEnd, type StartedProcess, startProcess } from '../process-tree.js';

// The shell's main loop: reads commands from descriptor 3, each ended by a zero byte, and evaluates them in place, so
// that folder, variables, functions and background jobs persist. After a command and its output it writes
// `\0mark\0status\0folder\n\0` to standard output; models use PWD for passwords. Commands have an empty standard input and cannot reach the shell's
// own descriptors. SIGURG leaves out the rest of a command, also within functions and loops: the command is sourced, so that
// the trap can return from it. `set -e` and `exit` end the shell; the next command gets a new one. Models begin many commands with
// `set -eu`: left on, a later `grep` that finds nothing would end the shell with all background jobs.
const SHELL_SCRIPT = `
exec 9>&1
builtin trap 'if [[ $__slipway_runs ]]; then builtin set -T; builtin trap "builtin return 130" DEBUG; builtin return 130; fi' URG
while IFS= builtin read -r -d '' -u 3 __slipway_mark && IFS= builtin read -r -d '' -u 3 __slipway_command; do
  __slipway_runs=1
  builtin . /dev/fd/8 8<<<'builtin eval "$__slipway_command" </dev/null >&9 2>&9 3<&- 8<&- 9>&-'
  { builtin printf '\\0%s\\0%d\\0' "$__slipway_mark" "$?"; builtin pwd; builtin printf '\\0'; } >&9
  __slipway_runs=
  builtin trap - DEBUG
  builtin set +euT
done
`;

class ShellProcess {
  /** The exit code (128 + n after signal n), once all its processes are gone and all output was read. */
  readonly ended: Promise<number>;
  readonly kill: () => Promise<void>;
  /** Receives the output; background jobs also write between commands. */
  output: (chunk: Buffer) => void = () => undefined;
  /** Called when `ended` resolves. A callback, because each command would add another listener to the promise. */
  onEnd: (exitCode: number) => void = () => undefined;
  exitCode: number | null = null;
  /** Of the program that isolates the shell, or of the shell. */
  readonly root: number;
  readonly #commands: Writable;

  private constructor({ child, stdout, exited, kill }: StartedProcess, commands: Writable) {
    this.root = child.pid ?? 0;
    this.kill = kill;
    this.#commands = commands;
    this.ended = exited.then(async (code) => {
      // Background jobs would keep the output open.
      await kill();
      await readToEnd([stdout]);
      this.exitCode = code;
      this.onEnd(code);
      return code;
    });
    stdout.on('data', (chunk: Buffer) => this.output(chunk));
    // Writes to a shell that ends are lost; its exit is handled above.
    commands.on('error', () => undefined);
  }

  /** @throws Error when the program cannot be started */
  static async start(
    cwd: string,
    env: Record<string, string>,
    wrapper: readonly string[],
  ): Promise<ShellProcess> {
    const command = [...wrapper, 'bash', '--noprofile', '--norc', '-c', SHELL_SCRIPT];
    const started = await startProcess({ command, cwd, env }, ['ignore', 'pipe', 'ignore', 'pipe']);
    const commands = started.child.stdio[3];
    if (!(commands instanceof Writable)) {
      throw new Error('the shell was not started');
    }
    return new ShellProcess(started, commands);
  }

  send(mark: string, command: string): void {
    this.#commands.write(`${mark}\0${command.replaceAll('\0', '')}\0`);
  }
}

/** Maximum size of an exit code and a folder: Linux limits paths to 4096 bytes. */
const MAX_END_BYTES = 4 + 4096 + 1;

export interface CommandEnd {
  exitCode: number;
  workingDir: string;
}

/** Finds the end of a command in the shell's output, however that is split into chunks. */
export class EndMarkScanner {
  readonly #mark: Buffer;
  #rest: Buffer = Buffer.alloc(0);

  constructor(mark: string) {
    this.#mark = Buffer.from(`\0${mark}\0`);
  }

  /** The output that cannot belong to the mark, and the end once it is complete. */
  scan(chunk: Uint8Array): { output: Uint8Array; end: CommandEnd | null } {
    const bytes = Buffer.concat([this.#rest, chunk]);
    this.#rest = Buffer.alloc(0);
    // Commands see the shell's variables, the mark among them: what only looks like an end is output.
    for (let from = 0; ;) {
      const at = bytes.indexOf(this.#mark, from);
      if (at === -1) {
        // The chunk may end with the beginning of the mark.
        return this.#hold(bytes, Math.max(from, bytes.length - this.#mark.length + 1));
      }
      const after = bytes.subarray(at + this.#mark.length, at + this.#mark.length + MAX_END_BYTES);
      const [status = '', workingDir, closed] = after.toString('utf8').split('\0');
      if (closed === undefined && after.length < MAX_END_BYTES) {
        return this.#hold(bytes, at);
      }
      if (closed !== undefined && /^\d{1,3}$/.test(status) && workingDir?.startsWith('/')) {
        const end = { exitCode: Number(status), workingDir: workingDir.replace(/\n$/, '') };
        return { output: bytes.subarray(0, at), end };
      }
      from = at + this.#mark.length;
    }
  }

  #hold(bytes: Buffer, from: number): { output: Uint8Array; end: null } {
    this.#rest = bytes.subarray(from);
    return { output: bytes.subarray(0, from), end: null };
  }

  /** The bytes held back, for when no end will follow. */
  flush(): Uint8Array {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }
}

interface ShellCommand {
  command: string;
  timeoutMs: number;
  environment: Record<string, string>;
  signal: AbortSignal;
}

/** Commands of bash that end with a line break; from the shell's environment. */
type Prelude = (environment: Readonly<Record<string, string>>) => string;

export interface ShellResult {
  output: string;
  /** null if the command did not end by itself. */
  exitCode: number | null;
  ending: 'exited' | 'timeout' | 'aborted';
  workingDir: string;
  /** Whether variables and background jobs are lost. */
  shellEnded: boolean;
}

/** `end`: null where the shell has ended, or has to. */
type Ending =
  | { how: 'exited'; exitCode: number; end: CommandEnd | null }
  | { how: 'timeout' | 'aborted'; end: CommandEnd | null };

/** What a command has started may end in order after SIGINT; a shell that then says nothing is not ours any more. */
const INTERRUPT_MS = 2_000;
const KILL_MS = 10_000;

/**
 * A conversation's shell: folder, variables and background jobs persist. An abort or a timeout ends what the command has
 * started. Where that does not end the command, the shell is killed with every process that it started, and the next
 * command gets a new one in the last known folder.
 */
export class ShellSession {
  readonly #home: string;
  readonly #wrapper: readonly string[];
  readonly #prelude: Prelude;
  #lastDir: string;
  #shell: ShellProcess | null = null;
  /** Once it has run a command. */
  #shellPid: number | null = null;
  #environment: Record<string, string> = {};
  #unread = new ShownOutput();

  /** @param prelude runs in each new shell before its first command */
  constructor(workingDir: string, wrapper: readonly string[] = [], prelude: Prelude = () => '') {
    this.#prelude = prelude;
    this.#home = workingDir;
    this.#lastDir = workingDir;
    this.#wrapper = wrapper;
  }

  /** The last folder, else the first, or what is left above it: where that is gone, Node.js reports the shell as missing. */
  get workingDir(): string {
    let folder = isFolder(this.#lastDir) ? this.#lastDir : this.#home;
    while (!isFolder(folder)) {
      folder = path.dirname(folder);
    }
    return folder;
  }

  /** Never call it while another command is running. @throws Error when the shell cannot be started */
  async run(command: ShellCommand): Promise<ShellResult> {
    const isNew = this.#shell === null;
    const shell = await this.#runningShell(command.environment);
    const changes = isNew
      ? this.#prelude(command.environment)
      : exportChanges(this.#environment, command.environment);
    this.#environment = command.environment;
    const output = this.#unread;
    const mark = randomUUID();
    const scanner = new EndMarkScanner(mark);
    const withChanges = { ...command, command: changes + command.command };
    if (isNew) {
      this.#shellPid = null;
    } else {
      this.#shellPid ??= findShell(shell.root);
    }
    const processes = CommandProcesses.ofNext(shell.root, this.#shellPid);
    const ending = await execute(shell, withChanges, { mark, scanner, output, processes });
    if (ending.end !== null) {
      this.#lastDir = ending.end.workingDir;
    } else {
      this.#shell = null;
      await shell.kill();
      // Output that was not read before the kill belongs to the command too.
      await shell.ended;
      output.push(scanner.flush());
    }
    this.#unread = new ShownOutput();
    shell.output = (chunk) => this.#unread.push(chunk);
    return {
      output: output.text(),
      exitCode: ending.how === 'exited' ? ending.exitCode : null,
      ending: ending.how,
      workingDir: this.workingDir,
      shellEnded: ending.end === null,
    };
  }

  /** Kills the shell with every process that it started, and returns to the initial folder. */
  async reset(): Promise<void> {
    const shell = this.#shell;
    this.#shell = null;
    this.#lastDir = this.#home;
    await shell?.kill();
    await shell?.ended;
    this.#unread = new ShownOutput();
  }

  /** A shell can also end between two commands. */
  async #dropWhenEnded(shell: ShellProcess): Promise<void> {
    await shell.ended;
    this.#shell = this.#shell === shell ? null : this.#shell;
  }

  async #runningShell(environment: Record<string, string>): Promise<ShellProcess> {
    if (this.#shell !== null) {
      return this.#shell;
    }
    const shell = await ShellProcess.start(this.workingDir, environment, this.#wrapper);
    this.#environment = environment;
    this.#shell = shell;
    void this.#dropWhenEnded(shell);
    return shell;
  }
}

function isFolder(folder: string): boolean {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** What a terminal would show of an output: its beginning and its end, where that is long. */
class ShownOutput {
  readonly #decoder = new StringDecoder('utf8');
  readonly #window = new OutputWindow();
  readonly #screen = new TerminalScreen((text) => this.#window.push(Buffer.from(text)));

  push(bytes: Uint8Array): void {
    this.#screen.write(this.#decoder.write(Buffer.from(bytes)));
  }

  /** Nothing can be added afterwards. */
  text(): string {
    this.#screen.end();
    return this.#window.text();
  }
}

interface CommandOutput {
  mark: string;
  scanner: EndMarkScanner;
  output: ShownOutput;
  processes: () => CommandProcesses | null;
}

async function execute(
  shell: ShellProcess,
  command: ShellCommand,
  { mark, scanner, output, processes }: CommandOutput,
): Promise<Ending> {
  const exited = Promise.withResolvers<{ exitCode: number; end: CommandEnd | null }>();
  const stopped = Promise.withResolvers<'timeout' | 'aborted'>();
  shell.output = (chunk) => {
    const { output: text, end } = scanner.scan(chunk);
    output.push(text);
    if (end !== null) {
      exited.resolve({ exitCode: end.exitCode, end });
    }
  };
  shell.onEnd = (exitCode) => exited.resolve({ exitCode, end: null });
  const abort = (): void => stopped.resolve('aborted');
  const timer = setTimeout(() => stopped.resolve('timeout'), command.timeoutMs);
  command.signal.addEventListener('abort', abort, { once: true });
  try {
    if (command.signal.aborted) {
      return { how: 'aborted', end: null };
    }
    if (shell.exitCode !== null) {
      return { how: 'exited', exitCode: shell.exitCode, end: null };
    }
    shell.send(mark, command.command);
    const first = await Promise.race([exited.promise, stopped.promise]);
    return typeof first === 'string'
      ? { how: first, end: await interrupt(processes(), exited.promise) }
      : { how: 'exited', ...first };
  } finally {
    clearTimeout(timer);
    command.signal.removeEventListener('abort', abort);
  }
}

/** Null where the shell has ended, or says nothing. */
async function interrupt(
  processes: CommandProcesses | null,
  exited: Promise<{ end: CommandEnd | null }>,
): Promise<CommandEnd | null> {
  if (processes === null) {
    return null;
  }
  processes.interrupt();
  let ended = await within(INTERRUPT_MS, exited);
  // Also what the command has left in the background, which does not get SIGINT.
  await processes.kill();
  ended ??= await within(KILL_MS, exited);
  return ended?.end ?? null;
}

/** Assignments that update the variables of a running shell; names that are invalid in a shell are skipped. */
function exportChanges(before: Record<string, string>, after: Record<string, string>): string {
  const changed = Object.entries(after).filter(
    ([name, value]) => before[name] !== value && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name),
  );
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  return [
    ...changed.map(([name, value]) => `export ${name}=${quoteForShell(value)}`),
    ...removed.map((name) => `unset ${name}`),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

export function quoteForShell(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/**
 * A bash script that exports what a repository's setup script has exported, except the variables in `own`. It runs
 * where tools run: the repository may set variables such as `LD_PRELOAD`, and tools may change the file.
 */
export function loadSetup(folder: string, own: readonly string[]): string {
  const file = quoteForShell(`${folder}/.git/${SETUP_ENVIRONMENT}`);
  const kept = quoteForShell(` ${own.join(' ')} `);
  return (
    `if [ -f ${file} ]; then while IFS= builtin read -r __slipway_line; do ` +
    `case ${kept} in *" \${__slipway_line%%=*} "*) ;; *) builtin eval "export $__slipway_line" ;; esac; ` +
    `done <${file}; unset __slipway_line; fi 2>/dev/null\n`
  );
}

/** Names of the variables that are not those of every tool, such as secrets. */
export function ownVariables(
  environment: Readonly<Record<string, string>>,
  base: Readonly<Record<string, string>>,
): string[] {
  return Object.keys(environment).filter((name) => environment[name] !== base[name]);
}
