import { existsSync } from 'node:fs';
import path from 'node:path';
import type { BashCommand, BashEvent, BashOutput, ExecuteBashRequest } from '../../agent-protocol/server.js';
import type { EventLog } from '../event-log.js';
import { HttpError } from '../http/http-errors.js';
import { describeFailure } from '../log.js';
import { runCommand } from '../process-tree.js';
import type { SecretMasker } from '../secret-masker.js';

/** Output that is worth keeping, per command; the rest is counted, not kept. */
const MAX_CHARACTERS = 4_000_000;
const FULL = 64_000;

type Stream = 'stdout' | 'stderr';

/** A piece of output, ready to be written. */
interface OutputPiece {
  stdout: string | null;
  stderr: string | null;
}

/** Gathers a command's output and hands it out in pieces, masked also where a secret spans two of them. */
export class OutputBuffer {
  readonly #masker: () => SecretMasker;
  readonly #waiting: Record<Stream, string> = { stdout: '', stderr: '' };
  #kept = 0;
  #dropped = 0;

  constructor(masker: () => SecretMasker) {
    this.#masker = masker;
  }

  /** @returns whether there is enough for a piece */
  add(stream: Stream, text: string): boolean {
    const room = MAX_CHARACTERS - this.#kept;
    const kept = text.slice(0, room);
    this.#waiting[stream] += kept;
    this.#kept += kept.length;
    this.#dropped += text.length - kept.length;
    return kept !== '' && this.#waiting.stdout.length + this.#waiting.stderr.length >= FULL;
  }

  /** What is certain so far; null when that is nothing. What may be the beginning of a secret is kept back. */
  take(): OutputPiece | null {
    const masker = this.#masker();
    const piece = {
      stdout: this.#takeStream('stdout', masker, true),
      stderr: this.#takeStream('stderr', masker, true),
    };
    return piece.stdout === null && piece.stderr === null ? null : piece;
  }

  /** All that is left. */
  takeRest(): OutputPiece {
    const masker = this.#masker();
    // Where the output was cut there may be the beginning of a secret; it is left out too.
    const isCut = this.#dropped > 0;
    if (isCut) {
      this.#waiting.stderr = this.#takeStream('stderr', masker, true) ?? '';
      this.#waiting.stderr += `\n[${this.#dropped} further characters of output were left out]\n`;
    }
    return {
      stdout: this.#takeStream('stdout', masker, isCut),
      stderr: this.#takeStream('stderr', masker, false),
    };
  }

  #takeStream(stream: Stream, masker: SecretMasker, isMoreToCome: boolean): string | null {
    const masked = masker.text(this.#waiting[stream]);
    const end = masked.length - (isMoreToCome ? masker.unfinished(masked) : 0);
    this.#waiting[stream] = masked.slice(end);
    return end === 0 ? null : masked.slice(0, end);
  }
}

const FLUSH_MS = 250;
const DEFAULT_TIMEOUT_SECONDS = 300;
/** How we say that a command did not end by itself. */
const ENDED_BY_US = -1;
const NOT_STARTED = 127;
const MAX_RUNNING = 50;

interface BashCommandsOptions {
  log: EventLog<BashEvent>;
  /** Where commands run that name no other place. */
  workspace: string;
  environment: Record<string, string>;
  /** Put before the shell. */
  wrapper: readonly string[];
  masker: () => SecretMasker;
}

/** Commands that clients run in the sandbox, outside of any conversation. */
export class BashCommands {
  readonly log: EventLog<BashEvent>;
  readonly #options: BashCommandsOptions;
  readonly #running = new Map<Promise<unknown>, AbortController>();

  constructor(options: BashCommandsOptions) {
    this.log = options.log;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /** Gives the commands an end that an earlier process of ours did not see ending. */
  async closeInterrupted(): Promise<void> {
    const open = new Map<string, number>();
    for (const event of this.log.entries) {
      if (event.kind === 'BashCommand') {
        open.set(event.id, 0);
      } else if (event.exit_code === null) {
        open.set(event.command_id, event.order + 1);
      } else {
        open.delete(event.command_id);
      }
    }
    for (const [commandId, order] of open) {
      const stderr = 'The command was interrupted: the agent server ended while it ran.\n';
      await this.#write(commandId, order, ENDED_BY_US, { stdout: null, stderr });
    }
  }

  /** Starts a command and answers at once; its output follows in the log. */
  async start(request: ExecuteBashRequest): Promise<BashCommand> {
    const { command } = await this.#begin(request);
    return command;
  }

  /** Runs a command to its end. Answers its last piece of output, with all of the output in it. */
  async execute(request: ExecuteBashRequest): Promise<BashOutput> {
    const { command, last } = await this.#begin(request);
    const output = await last;
    const pieces = this.log.entries.filter(
      (event): event is BashOutput => event.kind === 'BashOutput' && event.command_id === command.id,
    );
    const whole = (stream: 'stdout' | 'stderr'): string | null =>
      pieces.map((piece) => piece[stream] ?? '').join('') || null;
    return { ...output, stdout: whole('stdout'), stderr: whole('stderr') };
  }

  /** Forgets all events; what runs goes on. */
  async clear(): Promise<number> {
    return await this.log.clear();
  }

  /** Ends all commands. */
  async stop(): Promise<void> {
    this.#running.forEach((aborter) => aborter.abort());
    await Promise.allSettled(this.#running.keys());
  }

  async #begin(request: ExecuteBashRequest): Promise<{ command: BashCommand; last: Promise<BashOutput> }> {
    if (this.#running.size >= MAX_RUNNING) {
      throw new HttpError(429, 'Too many commands run at the same time.');
    }
    const masker = this.#options.masker();
    const command = await this.log.append((identity): BashCommand => ({
      kind: 'BashCommand',
      ...identity,
      command: masker.text(request.command),
      cwd: request.cwd ?? null,
      timeout: request.timeout ?? DEFAULT_TIMEOUT_SECONDS,
    }));
    if (command.kind !== 'BashCommand') {
      throw new TypeError('the log answered another event');
    }
    const aborter = new AbortController();
    const last = this.#run({ ...command, command: request.command }, aborter.signal);
    this.#running.set(last, aborter);
    // Whoever waits for it hears of a failure; nobody has to.
    last.catch(() => undefined).finally(() => this.#running.delete(last));
    return { command, last };
  }

  async #run(command: BashCommand, signal: AbortSignal): Promise<BashOutput> {
    const buffer = new OutputBuffer(this.#options.masker);
    let order = 0;
    const flush = async (): Promise<void> => {
      const piece = buffer.take();
      if (piece !== null) {
        order += 1;
        await this.#write(command.id, order - 1, null, piece);
      }
    };
    const timer = setInterval(() => void flush().catch(() => undefined), FLUSH_MS);
    const exitCode = await this.#runProgram(command, signal, async (stream, text) => {
      if (buffer.add(stream, text)) {
        await flush();
      }
    });
    clearInterval(timer);
    return await this.#write(command.id, order, exitCode, buffer.takeRest());
  }

  async #runProgram(
    command: BashCommand,
    signal: AbortSignal,
    onOutput: (stream: 'stdout' | 'stderr', text: string) => Promise<void>,
  ): Promise<number> {
    const cwd = path.resolve(this.#options.workspace, command.cwd ?? '.');
    if (!existsSync(cwd)) {
      // Node would say of the program that it is not there.
      await onOutput('stderr', `The command cannot be run: there is no folder ${cwd}\n`);
      return NOT_STARTED;
    }
    try {
      const { exitCode, timedOut } = await runCommand({
        command: [...this.#options.wrapper, 'bash', '-c', command.command],
        cwd,
        env: this.#options.environment,
        timeoutMs: command.timeout * 1000,
        signal,
        onOutput,
      });
      if (timedOut) {
        await onOutput('stderr', `\n[the command was ended after ${command.timeout} seconds]\n`);
      }
      return exitCode ?? ENDED_BY_US;
    } catch (error) {
      await onOutput('stderr', `The command cannot be run: ${describeFailure(error).message}\n`);
      return NOT_STARTED;
    }
  }

  async #write(
    commandId: string,
    order: number,
    exitCode: number | null,
    piece: OutputPiece,
  ): Promise<BashOutput> {
    const output = {
      kind: 'BashOutput' as const,
      command_id: commandId,
      order,
      exit_code: exitCode,
      ...piece,
    };
    const { id, timestamp } = await this.log.append((identity) => ({ ...output, ...identity }));
    return { ...output, id, timestamp };
  }
}
