import { once } from 'node:events';
import { Writable } from 'node:stream';
import { type StartedProcess, startProcess } from '../process-tree.js';

// The shell's main loop: reads commands from descriptor 3, each ended by a zero byte, and evaluates them in place, so
// that folder, variables, functions and background jobs persist. After a command and its output it writes
// `\0mark\0status\0folder\0` to standard output. Commands have an empty standard input and cannot reach the shell's
// own descriptors. `set -e` and `exit` end the shell; the next command gets a new one.
const SHELL_SCRIPT = `
exec 9>&1
while IFS= builtin read -r -d '' -u 3 __slipway_mark && IFS= builtin read -r -d '' -u 3 __slipway_command; do
  builtin eval "$__slipway_command" </dev/null >&9 2>&9 3<&- 9>&-
  builtin printf '\\0%s\\0%d\\0%s\\0' "$__slipway_mark" "$?" "$PWD" >&9
done
`;

interface ShellProcessOptions {
  cwd: string;
  environment: Record<string, string>;
  wrapper: readonly string[];
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
  readonly #commands: Writable;

  private constructor({ child, stdout, exited, kill }: StartedProcess, commands: Writable) {
    this.kill = kill;
    this.#commands = commands;
    const closed = once(child, 'close');
    this.ended = exited.then(async (code) => {
      // Background jobs would keep the output open.
      await kill();
      await closed;
      this.exitCode = code;
      this.onEnd(code);
      return code;
    });
    stdout.on('data', (chunk: Buffer) => this.output(chunk));
    // Writes to a shell that ends are lost; its exit is handled above.
    commands.on('error', () => undefined);
  }

  /** @throws Error when the program cannot be started */
  static async start({ cwd, environment: env, wrapper }: ShellProcessOptions): Promise<ShellProcess> {
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
        return { output: bytes.subarray(0, at), end: { exitCode: Number(status), workingDir } };
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
