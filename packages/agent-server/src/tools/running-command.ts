import { setImmediate as nextTurn } from 'node:timers/promises';
import { within } from '@slipway/common/async.js';
import type { CommandProcesses } from './command-processes.js';
import type { CommandEnd, EndMarkScanner, ShellProcess } from './shell-process.js';
import type { Waiting } from './terminal-readers.js';

/** `end`: null where the shell has ended, or has to. */
export type Ending =
  | { how: 'exited'; exitCode: number; end: CommandEnd | null }
  | { how: 'timeout' | 'aborted'; end: CommandEnd | null }
  | { how: 'waiting' };

export interface WaitLimits {
  timeoutMs: number;
  /** Whether the caller has named the time: then nothing is taken for waiting that only looks like it. */
  isPatient?: boolean;
  signal: AbortSignal;
}

interface CommandOutput {
  push(bytes: Uint8Array): void;
  text(): string;
}

interface CommandParts {
  scanner: EndMarkScanner;
  output: CommandOutput;
  processes: () => CommandProcesses | null;
  /** Whether it runs under job control. */
  canStop: boolean;
}

/** What a command has started may end in order after SIGINT; a shell that then says nothing is not ours any more. */
const INTERRUPT_MS = 2_000;
const KILL_MS = 10_000;

/** How long a program is silent before it counts as one that waits for input. */
const QUIET_MS: Readonly<Record<Waiting, number>> = { sure: 500, events: 3_000, perhaps: 30_000 };
const [FIRST_LOOK_MS, LAST_LOOK_MS] = [250, 5_000];
/** Looks are a tenth of the time that the command takes. */
const LOOKS_PART = 10;

/** A command that the shell was given, until it has ended. */
export class RunningCommand {
  readonly shell: ShellProcess;
  readonly canStop: boolean;
  readonly ended: Promise<Ending & { how: 'exited' }>;
  readonly #scanner: EndMarkScanner;
  readonly #processes: () => CommandProcesses | null;
  #output: CommandOutput;
  #quietSince = 0;
  hasEnded = false;
  /** States of what had waited when a text was sent; the same state means that it was not read yet. */
  #before: ReadonlySet<string> = new Set();

  constructor(shell: ShellProcess, { scanner, output, processes, canStop }: CommandParts) {
    this.shell = shell;
    this.canStop = canStop;
    this.#scanner = scanner;
    this.#processes = processes;
    this.#output = output;
    const { promise, resolve } = Promise.withResolvers<Ending & { how: 'exited' }>();
    this.ended = promise;
    const settle = (exitCode: number, end: CommandEnd | null): void => {
      this.hasEnded = true;
      resolve({ how: 'exited', exitCode, end });
    };
    shell.output = (chunk) => {
      const { output: text, end } = this.#scanner.scan(chunk);
      this.#output.push(text);
      this.#quietSince = performance.now();
      if (end !== null) {
        settle(end.exitCode, end);
      }
    };
    shell.onEnd = (exitCode) => settle(exitCode, null);
    if (shell.exitCode !== null) {
      settle(shell.exitCode, null);
    }
  }

  /** What it wrote so far; what it writes from now on goes to the `next`. */
  takeOutput(next: CommandOutput): string {
    const text = this.#output.text();
    this.#output = next;
    return text;
  }

  /** Shows the rest of the output when the shell has ended without an end of the command. */
  flush(): void {
    this.#output.push(this.#scanner.flush());
  }

  type(text: string): void {
    const processes = this.#processes();
    this.#before = new Set(text === '' ? [] : processes?.readers().map(({ state }) => state));
    const key = /^C-([a-z])$/i.exec(text.trim())?.[1]?.toLowerCase();
    if (key === 'c') {
      processes?.interruptProgram();
    } else if (key === 'z') {
      processes?.stop();
    } else if (key !== undefined) {
      this.shell.type(String.fromCharCode(key.charCodeAt(0) & CONTROL_BITS));
    } else if (text !== '') {
      this.shell.type(`${text.replaceAll('\n', '\r').replace(/\r$/, '')}\r`);
    }
  }

  /** Waits until it ends or wants input; interrupts it at the end of its time, and when it is aborted. */
  async wait({ timeoutMs, isPatient = false, signal }: WaitLimits): Promise<Ending> {
    const stopped = Promise.withResolvers<'timeout' | 'aborted' | 'waiting'>();
    const abort = (): void => stopped.resolve('aborted');
    const began = performance.now();
    this.#quietSince = began;
    const look = (): void => {
      this.#processes()?.leaveOutInterrupted();
      if (this.#waits(isPatient)) {
        stopped.resolve('waiting');
      }
      looks = lookLater();
    };
    const lookLater = (): NodeJS.Timeout => {
      const pause = (performance.now() - began) / LOOKS_PART;
      return setTimeout(look, Math.min(Math.max(pause, FIRST_LOOK_MS), LAST_LOOK_MS));
    };
    let looks = lookLater();
    const timer = setTimeout(
      () => stopped.resolve(this.#seen(null) === 'sure' ? 'waiting' : 'timeout'),
      timeoutMs,
    );
    signal.addEventListener('abort', abort, { once: true });
    try {
      if (signal.aborted) {
        abort();
      }
      const first = await Promise.race([this.ended, stopped.promise]);
      if (typeof first !== 'string') {
        return first;
      }
      if (first !== 'waiting') {
        return { how: first, end: await this.#interrupt() };
      }
      // What it wrote before it waited is read first: timers come before that.
      await nextTurn();
      return { how: first };
    } finally {
      clearTimeout(timer);
      clearTimeout(looks);
      signal.removeEventListener('abort', abort);
    }
  }

  #waits(isPatient: boolean): boolean {
    const quiet = performance.now() - this.#quietSince;
    if (quiet < QUIET_MS.sure) {
      return false;
    }
    const waiting = this.#seen(this.#before);
    return waiting !== null && quiet >= QUIET_MS[waiting] && !(isPatient && waiting === 'perhaps');
  }

  /** @param before what has not been awake since only may wait */
  #seen(before: ReadonlySet<string> | null): Waiting | null {
    const readers = this.#processes()?.readers() ?? [];
    const found = readers.map(({ waiting, state }) => (before?.has(state) === true ? 'perhaps' : waiting));
    return (['sure', 'events', 'perhaps'] as const).find((waiting) => found.includes(waiting)) ?? null;
  }

  /** Returns null if the shell has ended, or does not report an end. */
  async #interrupt(): Promise<CommandEnd | null> {
    const processes = this.#processes();
    if (processes === null) {
      return null;
    }
    processes.interrupt();
    let ended = await within(INTERRUPT_MS, this.ended);
    // Also what the command has left in the background, which does not get SIGINT.
    await processes.kill();
    ended ??= await within(KILL_MS, this.ended);
    return ended?.end ?? null;
  }
}

/** The bits of a letter's code that a terminal sends for it with Ctrl. */
const CONTROL_BITS = 31;
