import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import path from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { OutputWindow } from '../clipped-text.js';
import { EndMarkScanner, ShellProcess, startsJobs } from './shell-process.js';
import { TerminalScreen } from './terminal-screen.js';
import { CommandProcesses, findShell } from './command-processes.js';
import { quoteForShell } from './shell-environment.js';
import { type Ending, RunningCommand, type WaitLimits } from './running-command.js';

interface ShellCommand extends WaitLimits {
  command: string;
  environment: Record<string, string>;
}

/** Commands of bash that end with a line break; from the shell's environment. */
type Prelude = (environment: Readonly<Record<string, string>>) => string;

export interface ShellResult {
  output: string;
  /** The exit code; null if the command did not end by itself. */
  exitCode: number | null;
  /** `waiting`: it goes on, and wants input. */
  ending: Ending['how'];
  workingDir: string;
  /** Whether variables and background jobs are lost. */
  shellEnded: boolean;
}

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
  /** Process id of the shell, known once it has run a command. */
  #shellPid: number | null = null;
  #environment: Record<string, string> = {};
  #unread = new ShownOutput();
  #waiting: RunningCommand | null = null;

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

  /** What was begun last and waits for input; null where nothing does. */
  get waiting(): { canStop: boolean } | null {
    return this.#waiting?.hasEnded === false ? this.#waiting : null;
  }

  /** Never call it while another command is running, or waiting. @throws Error when the shell cannot be started */
  async run(command: ShellCommand): Promise<ShellResult> {
    await this.#settleEnded();
    const isNew = this.#shell === null;
    const shell = await this.#runningShell(command.environment);
    const changes = isNew
      ? this.#prelude(command.environment)
      : exportChanges(this.#environment, command.environment);
    this.#environment = command.environment;
    const mark = randomUUID();
    this.#shellPid = isNew ? null : (this.#shellPid ?? findShell(shell.root));
    const running = new RunningCommand(shell, {
      scanner: new EndMarkScanner(mark),
      output: this.#unread,
      processes: CommandProcesses.ofNext(shell.root, this.#shellPid, command.command),
      canStop: !startsJobs(command.command),
    });
    if (command.signal.aborted) {
      return this.#settle(running, { how: 'aborted', end: null });
    }
    shell.send(mark, changes + command.command, running.canStop);
    return this.#settle(running, await running.wait(command));
  }

  /** Gives what waits a text, a line of its own, or keys such as `C-d`; an empty text waits longer. Only while something waits. */
  async type(text: string, limits: WaitLimits): Promise<ShellResult> {
    const running = this.#waiting;
    if (running === null) {
      throw new Error('no program waits for input');
    }
    running.type(text);
    return this.#settle(running, await running.wait(limits));
  }

  async #settle(running: RunningCommand, ending: Ending): Promise<ShellResult> {
    const { shell } = running;
    this.#waiting = ending.how === 'waiting' ? running : null;
    if (ending.how !== 'waiting') {
      if (ending.end !== null) {
        this.#lastDir = ending.end.workingDir;
      } else {
        this.#shell = null;
        await shell.kill();
        // Output that was not read before the kill belongs to the command too.
        await shell.ended;
        running.flush();
      }
      this.#unread = new ShownOutput();
      shell.output = (chunk) => this.#unread.push(chunk);
    }
    return {
      output: running.takeOutput(new ShownOutput()),
      exitCode: ending.how === 'exited' ? ending.exitCode : null,
      ending: ending.how,
      workingDir: this.workingDir,
      shellEnded: ending.how !== 'waiting' && ending.end === null,
    };
  }

  /** What had waited may have ended since; the next command shows what it wrote. */
  async #settleEnded(): Promise<void> {
    if (this.#waiting !== null) {
      const { output } = await this.#settle(this.#waiting, await this.#waiting.ended);
      this.#unread.push(Buffer.from(output));
    }
  }

  /** Kills the shell with every process that it started, and returns to the initial folder. */
  async reset(): Promise<void> {
    const shell = this.#shell;
    this.#shell = null;
    this.#waiting = null;
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
