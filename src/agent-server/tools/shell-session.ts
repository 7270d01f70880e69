import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { constants } from 'node:os';
import { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { killTree, MARKER_VARIABLE } from '../process-tree.js';
import { joinEnds, MAX_TOOL_TEXT } from './tool.js';

/**
 * What the shell of a terminal runs: commands come one by one over descriptor 3, each ended by a zero byte, and are
 * evaluated in this very shell, so that folder, variables, functions and background jobs stay. After each one it
 * says on its own standard output, after all that the command wrote there, `\0mark\0status\0folder\0`.
 *
 * Commands read nothing from their standard input and cannot reach the shell's own descriptors. `set -e` and `exit`
 * end the shell; the next command gets a new one.
 */
const SHELL_SCRIPT = `
exec 9>&1
while IFS= builtin read -r -d '' -u 3 __slipway_mark && IFS= builtin read -r -d '' -u 3 __slipway_command; do
  builtin eval "$__slipway_command" </dev/null >&9 2>&9 3<&- 9>&-
  builtin printf '\\0%s\\0%d\\0%s\\0' "$__slipway_mark" "$?" "$PWD" >&9
done
`;

/** Text that a shell reads as exactly this value. */
export function quoteForShell(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/** Assignments that bring the variables of a running shell up to date; names that no shell can have are left out. */
function exportChanges(before: Record<string, string>, after: Record<string, string>): string {
  const changed = Object.entries(after).filter(
    ([name, value]) => before[name] !== value && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name),
  );
  const gone = Object.keys(before).filter((name) => !(name in after));
  return [
    ...changed.map(([name, value]) => `export ${name}=${quoteForShell(value)}`),
    ...gone.map((name) => `unset ${name}`),
  ]
    .map((line) => `${line}\n`)
    .join('');
}

interface LiveShellOptions {
  cwd: string;
  environment: Record<string, string>;
  /** Program and arguments put before the shell. */
  wrapper: readonly string[];
}

/** A running shell that takes commands one by one. */
class LiveShell {
  /** Its exit code (128 + n after signal n), once all that it started is gone and all output was read. */
  readonly ended: Promise<number>;
  /** Takes the output, of background jobs also between commands. */
  output: (chunk: Buffer) => void = () => undefined;
  /** Told the exit code when `ended` resolves; a promise would collect a listener with each command. */
  onEnd: (exitCode: number) => void = () => undefined;
  /** Set when `ended` has resolved. */
  exitCode: number | null = null;
  readonly #pid: number;
  readonly #marker: string;
  readonly #commands: Writable;

  private constructor(child: ChildProcess, pid: number, commands: Writable, marker: string) {
    this.#pid = pid;
    this.#marker = marker;
    this.#commands = commands;
    const closed = new Promise<void>((resolve) => {
      child.once('close', () => resolve());
    });
    const exited = new Promise<number>((resolve) => {
      child.once('exit', (code, signal) =>
        resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
      );
    });
    this.ended = exited.then(async (code) => {
      // Background jobs would hold the output open.
      await this.kill();
      await closed;
      this.exitCode = code;
      this.onEnd(code);
      return code;
    });
    child.stdout?.on('data', (chunk: Buffer) => this.output(chunk));
    // What is written to a shell that ends is lost; its end is what counts.
    commands.on('error', () => undefined);
  }

  /** @throws Error when the program cannot be started */
  static async start({ cwd, environment, wrapper }: LiveShellOptions): Promise<LiveShell> {
    const marker = randomUUID();
    const shell = ['bash', '--noprofile', '--norc', '-c', SHELL_SCRIPT];
    const [program = 'bash', ...args] = wrapper.concat(shell);
    const child = spawn(program, args, {
      cwd,
      env: { ...environment, [MARKER_VARIABLE]: marker },
      stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
      // A process group of its own.
      detached: true,
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    const commands = child.stdio[3];
    if (child.pid === undefined || !(commands instanceof Writable)) {
      throw new Error('the shell has no process id');
    }
    return new LiveShell(child, child.pid, commands, marker);
  }

  /** @param mark what the shell says when the command has ended */
  send(mark: string, command: string): void {
    this.#commands.write(`${mark}\0${command.replaceAll('\0', '')}\0`);
  }

  /** Ends the shell and everything that it started. */
  async kill(): Promise<void> {
    await killTree(this.#pid, this.#marker);
  }
}

/** What the shell said at the end of a command. */
export interface CommandEnd {
  exitCode: number;
  workingDir: string;
}

/** Finds the end of a command in the bytes that a shell writes, whichever way they are cut into chunks. */
export class MarkScanner {
  readonly #mark: Buffer;
  #rest: Buffer = Buffer.alloc(0);

  constructor(mark: string) {
    this.#mark = Buffer.from(`\0${mark}\0`);
  }

  /** Output that is certainly none of the mark, and the end once it is complete. */
  scan(chunk: Uint8Array): { output: Uint8Array; end: CommandEnd | null } {
    const bytes = Buffer.concat([this.#rest, chunk]);
    const at = bytes.indexOf(this.#mark);
    if (at === -1) {
      // A beginning of the mark may stand at the end.
      const keep = Math.min(bytes.length, this.#mark.length - 1);
      this.#rest = bytes.subarray(bytes.length - keep);
      return { output: bytes.subarray(0, bytes.length - keep), end: null };
    }
    const [exitCode, workingDir, closed] = bytes
      .subarray(at + this.#mark.length)
      .toString('utf8')
      .split('\0');
    if (exitCode === undefined || workingDir === undefined || closed === undefined) {
      this.#rest = bytes.subarray(at);
      return { output: bytes.subarray(0, at), end: null };
    }
    this.#rest = Buffer.alloc(0);
    return { output: bytes.subarray(0, at), end: { exitCode: Number(exitCode), workingDir } };
  }

  /** What was held back, when no end will come any more. */
  flush(): Uint8Array {
    const rest = this.#rest;
    this.#rest = Buffer.alloc(0);
    return rest;
  }
}

/** Takes the output of a command of any length and keeps its beginning and its end. */
export class OutputWindow {
  readonly #decoder = new StringDecoder('utf8');
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #head = '';
  #tail = '';
  #missing = 0;

  constructor(limit: number = MAX_TOOL_TEXT) {
    this.#headLimit = Math.ceil(limit / 2);
    this.#tailLimit = limit - this.#headLimit;
  }

  push(bytes: Uint8Array): void {
    this.#add(this.#decoder.write(Buffer.from(bytes)));
  }

  /** What was kept. */
  text(): string {
    const head = this.#head;
    if (this.#tail.length > this.#tailLimit) {
      this.#trim();
    }
    return this.#missing === 0 ? head + this.#tail : joinEnds(head, this.#tail, this.#missing);
  }

  #add(text: string): void {
    const room = this.#headLimit - this.#head.length;
    this.#head += text.slice(0, room);
    this.#tail += text.slice(room);
    // Twice the limit before it is cut: a cut per chunk would copy the end each time.
    if (this.#tail.length > 2 * this.#tailLimit) {
      this.#trim();
    }
  }

  #trim(): void {
    this.#missing += this.#tail.length - this.#tailLimit;
    this.#tail = this.#tail.slice(this.#tail.length - this.#tailLimit);
  }
}

interface ShellCommand {
  command: string;
  timeoutMs: number;
  /** The whole environment. */
  environment: Record<string, string>;
  signal: AbortSignal;
}

export interface ShellResult {
  output: string;
  /** null: it did not end by itself. */
  exitCode: number | null;
  ending: 'exited' | 'timeout' | 'aborted';
  /** Folder of the next command. */
  workingDir: string;
  /** Whether variables and background jobs are gone. */
  shellEnded: boolean;
}

type Ending =
  | { how: 'command'; end: CommandEnd }
  | { how: 'shell'; exitCode: number }
  | { how: 'timeout' }
  | { how: 'aborted' };

/**
 * One shell that lives as long as its conversation: folder, variables and background jobs stay from command to
 * command. A command that is aborted or outlives its time takes the shell and all that it started along; the next
 * one gets a new shell in the last known folder.
 */
export class ShellSession {
  readonly #home: string;
  readonly #wrapper: readonly string[];
  #lastDir: string;
  #shell: LiveShell | null = null;
  #environment: Record<string, string> = {};
  #unread = new OutputWindow();

  /** @param wrapper program and arguments put before the shell, for example one that isolates it */
  constructor(workingDir: string, wrapper: readonly string[] = []) {
    this.#home = workingDir;
    this.#lastDir = workingDir;
    this.#wrapper = wrapper;
  }

  /** Folder of the next command. */
  get workingDir(): string {
    return isFolder(this.#lastDir) ? this.#lastDir : this.#home;
  }

  /**
   * Not to be called while a command runs.
   *
   * @throws Error when there is no shell to start
   */
  async run(command: ShellCommand): Promise<ShellResult> {
    const shell = await this.#liveShell(command.environment);
    const changes = exportChanges(this.#environment, command.environment);
    this.#environment = command.environment;
    const output = this.#unread;
    const mark = randomUUID();
    const scanner = new MarkScanner(mark);
    const given = { ...command, command: changes + command.command };
    const ending = await execute(shell, given, { mark, scanner, output });
    if (ending.how === 'command') {
      this.#lastDir = ending.end.workingDir;
    } else {
      this.#shell = null;
      await shell.kill();
      // What it printed until then belongs to the command, read or not.
      await shell.ended;
      output.push(scanner.flush());
    }
    this.#unread = new OutputWindow();
    shell.output = (chunk) => this.#unread.push(chunk);
    return {
      output: output.text(),
      exitCode:
        ending.how === 'command' ? ending.end.exitCode : ending.how === 'shell' ? ending.exitCode : null,
      ending: ending.how === 'timeout' || ending.how === 'aborted' ? ending.how : 'exited',
      workingDir: this.workingDir,
      shellEnded: ending.how !== 'command',
    };
  }

  /** Ends the shell and everything that it started; the folder is the first one again. */
  async reset(): Promise<void> {
    const shell = this.#shell;
    this.#shell = null;
    this.#lastDir = this.#home;
    await shell?.kill();
    await shell?.ended;
    this.#unread = new OutputWindow();
  }

  async #liveShell(environment: Record<string, string>): Promise<LiveShell> {
    if (this.#shell !== null) {
      return this.#shell;
    }
    const shell = await LiveShell.start({ cwd: this.workingDir, environment, wrapper: this.#wrapper });
    this.#environment = environment;
    this.#shell = shell;
    void this.#forgetEnded(shell);
    return shell;
  }

  /** A shell may also end between two commands. */
  async #forgetEnded(shell: LiveShell): Promise<void> {
    await shell.ended;
    if (this.#shell === shell) {
      this.#shell = null;
    }
  }
}

interface CommandOutput {
  mark: string;
  scanner: MarkScanner;
  output: OutputWindow;
}

async function execute(
  shell: LiveShell,
  command: ShellCommand,
  { mark, scanner, output }: CommandOutput,
): Promise<Ending> {
  return await new Promise<Ending>((resolve) => {
    const abort = (): void => settle({ how: 'aborted' });
    const timer = setTimeout(() => settle({ how: 'timeout' }), command.timeoutMs);
    const settle = (how: Ending): void => {
      clearTimeout(timer);
      command.signal.removeEventListener('abort', abort);
      resolve(how);
    };
    shell.output = (chunk) => {
      const { output: text, end } = scanner.scan(chunk);
      output.push(text);
      if (end !== null) {
        settle({ how: 'command', end });
      }
    };
    command.signal.addEventListener('abort', abort, { once: true });
    shell.onEnd = (exitCode) => settle({ how: 'shell', exitCode });
    if (command.signal.aborted) {
      abort();
    } else if (shell.exitCode !== null) {
      settle({ how: 'shell', exitCode: shell.exitCode });
    } else {
      shell.send(mark, command.command);
    }
  });
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
