import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { LiveShell } from './live-shell.js';
import { type CommandEnd, MarkScanner } from './mark-scanner.js';
import { OutputWindow } from './output-window.js';
import { exportChanges } from './shell-script.js';

export interface ShellCommand {
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
