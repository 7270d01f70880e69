import { Writable } from 'node:stream';
import { readToEnd, type StartedProcess, startProcess } from '../process-tree.js';
import { quoteForShell } from './shell-environment.js';

// The shell reads these lines from descriptor 0, one for the command and one for its end: where SIGINT ends a program under job
// control, bash leaves the line. Behind the first follow mark, option and command, each ended by a zero byte. Commands are evaluated in
// place, so that folder, variables, functions and background jobs persist. After a command and its output the shell writes
// `\0mark\0status\0folder\n\0` to its output; models use PWD for passwords. Commands cannot reach the shell's own descriptors. SIGURG
// leaves out the rest of a command, also within functions and loops: the command is sourced, so that the trap can return from it.
// `set -e` and `exit` end the shell; the next command gets a new one. Models begin many commands with `set -eu`: left on, a later `grep`
// that finds nothing would end the shell with all background jobs. A program that a signal has ended may have left the terminal
// as it needed it.
const PREPARE = `builtin trap 'if [[ $__slipway_runs ]]; then builtin set -T; builtin trap "builtin return 130" DEBUG; builtin return 130; fi' INT URG`;
const RUN =
  `IFS= builtin read -r -d '' __slipway_mark; IFS= builtin read -r -d '' __slipway_jobs; ` +
  `IFS= builtin read -r -d '' __slipway_command; __slipway_runs=1; builtin set "$__slipway_jobs"; ` +
  `builtin . /dev/fd/8 8<<<'builtin eval "$__slipway_command" <&7 >&9 2>&9 7<&- 8<&- 9>&-'`;
const END =
  `__slipway_status=$?; __slipway_runs=; builtin trap - DEBUG; builtin set +eumT; ` +
  `if [[ $__slipway_status -gt 128 && -t 7 ]]; then command stty sane -echo <&7; fi; ` +
  `{ builtin printf '\\0%s\\0%d\\0' "$__slipway_mark" "$__slipway_status"; builtin pwd; builtin printf '\\0'; } >&9`;
const SHELL = 'bash --noprofile --norc -s 7<&0 <&3 3<&- 2>/dev/null';

// Standard input is a terminal, where the sandbox can make one: programs ask, and many read lines, only there. It controls
// no process: background jobs may read it, signals are ours to send, and what insists on `/dev/tty` fails at once.
// Output goes through a pipe, so that programs neither colour nor page it.
const START_SCRIPT = `
exec 9>&1
if [[ -c /dev/ptmx && "$(script --version 2>/dev/null)" == *util-linux* ]]; then
  __slipway_shell=$SHELL SHELL=/bin/sh exec script -qefc ${quoteForShell(
    `exec 2>/dev/null; stty -echo; SHELL=$__slipway_shell; unset __slipway_shell; setsid ${SHELL}; exit $?`,
  )} /dev/null
fi
exec </dev/null
exec ${SHELL}
`;

/** Whether a command may leave programs in the background, which then get no terminal: bash gives them one under job control. */
export function startsJobs(command: string): boolean {
  return /(?<![&>|<\\])&(?![&>])/.test(command);
}

export class ShellProcess {
  /** The exit code (128 + n after signal n), once all its processes are gone and all output was read. */
  readonly ended: Promise<number>;
  readonly kill: () => Promise<void>;
  /** Receives the output; background jobs also write between commands. */
  output: (chunk: Buffer) => void = () => undefined;
  /** Called when `ended` resolves. A callback, because each command would add another listener to the promise. */
  onEnd: (exitCode: number) => void = () => undefined;
  exitCode: number | null = null;
  /** Process id of the program that isolates the shell, or of the shell. */
  readonly root: number;
  readonly #commands: Writable;
  readonly #terminal: Writable;

  private constructor({ child, stdin, stdout, exited, kill }: StartedProcess, commands: Writable) {
    this.root = child.pid ?? 0;
    this.kill = kill;
    this.#commands = commands;
    this.#terminal = stdin;
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
    stdin.on('error', () => undefined);
  }

  /** @throws Error when the program cannot be started */
  static async start(
    cwd: string,
    env: Record<string, string>,
    wrapper: readonly string[],
  ): Promise<ShellProcess> {
    const command = [...wrapper, 'bash', '--norc', '--noprofile', '-pc', START_SCRIPT];
    const started = await startProcess({ command, cwd, env }, ['pipe', 'pipe', 'ignore', 'pipe']);
    const commands = started.child.stdio[3];
    if (!(commands instanceof Writable)) {
      throw new Error('the shell was not started');
    }
    commands.write(`${PREPARE}\n`);
    return new ShellProcess(started, commands);
  }

  /** @param jobControl whether what it runs can be stopped, and goes on with `fg` */
  send(mark: string, command: string, jobControl: boolean): void {
    const parts = [mark, jobControl ? '-m' : '+m', command.replaceAll('\0', '')];
    this.#commands.write(`${RUN}\n${parts.map((part) => `${part}\0`).join('')}${END}\n`);
  }

  /** Types into the terminal. */
  type(keys: string): void {
    this.#terminal.write(keys);
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
        return this.#hold(bytes, this.#beginning(bytes, from));
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

  /** Offset of a begun mark at the end of the chunk; the output before it is shown while the program waits. */
  #beginning(bytes: Buffer, from: number): number {
    let at = bytes.indexOf(0, Math.max(from, bytes.length - this.#mark.length + 1));
    while (at !== -1 && !bytes.subarray(at).equals(this.#mark.subarray(0, bytes.length - at))) {
      at = bytes.indexOf(0, at + 1);
    }
    return at === -1 ? bytes.length : at;
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
