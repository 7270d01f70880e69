import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import {
  childrenOf,
  type ProcessFacts,
  readProcesses,
  sendSignal,
} from '@slipway/common/processes/end-processes.js';
import { isStopped, type Reader, terminalOf, terminalReaders } from './terminal-readers.js';

/** The processes that one command of a shell has started, as long as their parents have not left them. */
export class CommandProcesses {
  readonly #shell: number;
  readonly #before: ReadonlySet<number>;
  /** Start times by id: an id may be another process's by now. */
  readonly #seen = new Map<number, string>();
  #interrupted: readonly number[] | null = null;

  /** Made before the command. A new shell (null) is looked for when it is needed, and has no children yet; `fg` goes on with old ones. */
  static ofNext(root: number, shell: number | null, command: string): () => CommandProcesses | null {
    const children = shell === null ? [] : childrenOf(shell);
    const before = new Set(/\bfg\b/.test(command) ? children.filter((pid) => !isStopped(pid)) : children);
    let made: CommandProcesses | null = null;
    return () => {
      const found = made === null ? (shell ?? findShell(root)) : null;
      made ??= found === null ? null : new CommandProcesses(found, before);
      return made;
    };
  }

  private constructor(shell: number, before: ReadonlySet<number>) {
    this.#shell = shell;
    this.#before = before;
  }

  /** The shell leaves out the rest of the command once that has ended which it waits for. */
  interrupt(): void {
    sendSignal(this.#shell, LEAVE_OUT);
    this.#living().forEach((pid) => sendSignal(pid, 'SIGINT'));
  }

  /** Acts like Ctrl-C. The rest of the command is skipped once what was running has ended, which may go on. */
  interruptProgram(): void {
    this.#interrupted = this.#living();
    this.#interrupted.forEach((pid) => sendSignal(pid, 'SIGINT'));
    this.leaveOutInterrupted();
  }

  leaveOutInterrupted(): void {
    if (this.#interrupted !== null) {
      const living = new Set(this.#living());
      if (!this.#interrupted.some((pid) => living.has(pid))) {
        this.#interrupted = null;
        sendSignal(this.#shell, LEAVE_OUT);
      }
    }
  }

  /** Acts like Ctrl-Z. */
  stop(): void {
    this.#living().forEach((pid) => sendSignal(pid, 'SIGTSTP'));
  }

  /** What waits for input from the shell's terminal, the shell itself too; empty where it has none. */
  readers(): Reader[] {
    const terminal = terminalOf(this.#shell);
    return terminal === null
      ? []
      : [this.#shell, ...this.#living()].flatMap((pid) => terminalReaders(pid, terminal));
  }

  /** Kills them, however often they fork. */
  async kill(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const found = this.#living();
      if (found.length === 0) {
        return;
      }
      // Stopped first: a parent that is killed before its child is seen takes the trace to the child with it.
      found.forEach((pid) => sendSignal(pid, 'SIGSTOP'));
      new Set([...found, ...this.#living()]).forEach((pid) => sendSignal(pid, 'SIGKILL'));
      await delay(ROUND_PAUSE_MS);
    }
  }

  #living(): number[] {
    const processes = readProcesses() ?? [];
    const isOurs = ({ pid, parent, startTime }: ProcessFacts): boolean =>
      (parent === this.#shell && !this.#before.has(pid)) ||
      this.#seen.has(parent) ||
      this.#seen.get(pid) === startTime;
    let ours: ProcessFacts[] = [];
    for (let grown = true; grown;) {
      const found = processes.filter(isOurs);
      found.forEach(({ pid, startTime }) => this.#seen.set(pid, startTime));
      grown = found.length > ours.length;
      ours = found;
    }
    return ours.map(({ pid }) => pid);
  }
}

const MAX_ROUNDS = 100;
const ROUND_PAUSE_MS = 5;

/** Ignored by programs that do not ask for it, such as one that has replaced the shell. */
const LEAVE_OUT = 'SIGURG';

/** Behind the programs that isolate it; null where it cannot be seen. */
export function findShell(root: number): number | null {
  const processes = readProcesses() ?? [];
  for (let level = [root]; level.length > 0;) {
    const shell = level.find(isShell);
    if (shell !== undefined) {
      return shell;
    }
    const above = new Set(level);
    level = processes.filter(({ parent }) => above.has(parent)).map(({ pid }) => pid);
  }
  return null;
}

function isShell(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('bash\0--noprofile\0--norc\0-s\0');
  } catch {
    return false;
  }
}
