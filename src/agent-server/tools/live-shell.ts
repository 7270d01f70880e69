import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import { Writable } from 'node:stream';
import { killTree, MARKER_VARIABLE } from '../process-tree.js';
import { SHELL_SCRIPT } from './shell-script.js';

export interface LiveShellOptions {
  cwd: string;
  environment: Record<string, string>;
  /** Program and arguments put before the shell. */
  wrapper: readonly string[];
}

/** A running shell that takes commands one by one. */
export class LiveShell {
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
