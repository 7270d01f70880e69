import { existsSync } from 'node:fs';
import type {
  BashCommand,
  BashEvent,
  BashOutput,
  ExecuteBashRequest,
} from '@slipway/agent-protocol/server.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import type { EventLog } from '../event-log.js';
import { HttpError } from '../http/http-error.js';
import { resolvePath, type ToolView } from '../tool-view.js';
import { runCommand } from '../process-tree.js';
import type { SecretMasker } from '../secret-masker.js';

const FLUSH_INTERVAL_MS = 250;
const DEFAULT_TIMEOUT_SECONDS = 300;
const KILLED = -1;
/** Exit code of a command that could not be started, as shells have it. */
const NOT_STARTED = 127;
const MAX_CONCURRENT_COMMANDS = 50;

interface BashCommandsOptions {
  log: EventLog<BashEvent>;
  workspace: string;
  view: ToolView;
  /** Hides those besides what conversations know. */
  masker: (secrets: readonly string[]) => SecretMasker;
}

interface Run {
  command: BashCommand;
  env: Readonly<Record<string, string>>;
  masker: () => SecretMasker;
}

/** The form of ids in this log: 32 hexadecimal digits, as the published server has them; clients may add dashes. */
export function toBashId(id: string): string {
  return id.replaceAll('-', '').toLowerCase();
}

export class BashCommands {
  readonly log: EventLog<BashEvent>;
  readonly #options: BashCommandsOptions;
  readonly #running = new Map<string, { aborter: AbortController; last: Promise<BashOutput> }>();

  constructor(options: BashCommandsOptions) {
    this.log = options.log;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  find(id: string): BashEvent | undefined {
    return this.log.get(toBashId(id));
  }

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
      await this.#write(commandId, order, KILLED, { stdout: null, stderr });
    }
  }

  async start(request: ExecuteBashRequest): Promise<BashCommand> {
    const { command } = await this.#begin(request);
    return command;
  }

  /** Runs a command to its end and returns its last output event, which holds all of the output. */
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

  /** Kills a command and waits until its end is logged; false for an unknown command. */
  async stopCommand(id: string): Promise<boolean> {
    const running = this.#running.get(toBashId(id));
    if (running === undefined) {
      return this.find(id)?.kind === 'BashCommand';
    }
    running.aborter.abort();
    await Promise.allSettled([running.last]);
    return true;
  }

  async stop(): Promise<void> {
    const running = [...this.#running.values()];
    running.forEach(({ aborter }) => aborter.abort());
    await Promise.allSettled(running.map(({ last }) => last));
  }

  async #begin(request: ExecuteBashRequest): Promise<{ command: BashCommand; last: Promise<BashOutput> }> {
    if (this.#running.size >= MAX_CONCURRENT_COMMANDS) {
      throw new HttpError(429, 'Too many commands are running.');
    }
    const masker = (): SecretMasker => this.#options.masker(Object.values(request.env ?? {}));
    const command = await this.log.append((identity): BashCommand => ({
      kind: 'BashCommand',
      ...identity,
      id: toBashId(identity.id),
      command: masker().text(request.command),
      cwd: request.cwd ?? null,
      timeout: request.timeout ?? DEFAULT_TIMEOUT_SECONDS,
    }));
    const aborter = new AbortController();
    const run = { command: { ...command, command: request.command }, env: request.env ?? {}, masker };
    const last = this.#run(run, aborter.signal);
    this.#running.set(command.id, { aborter, last });
    // Callers that await `last` get its failure; it must not count as an unhandled rejection here.
    last.catch(() => undefined).finally(() => this.#running.delete(command.id));
    return { command, last };
  }

  async #run(run: Run, signal: AbortSignal): Promise<BashOutput> {
    const { command } = run;
    const buffer = new CommandOutputBuffer(run.masker);
    let order = 0;
    const flush = async (): Promise<void> => {
      const piece = buffer.take();
      if (piece !== null) {
        order += 1;
        await this.#write(command.id, order - 1, null, piece);
      }
    };
    const timer = setInterval(() => void flush().catch(() => undefined), FLUSH_INTERVAL_MS);
    const exitCode = await this.#runProgram(run, signal, async (stream, text) => {
      if (buffer.add(stream, text)) {
        await flush();
      }
    });
    clearInterval(timer);
    return await this.#write(command.id, order, exitCode, buffer.takeRest());
  }

  async #runProgram(
    { command, env }: Run,
    signal: AbortSignal,
    onOutput: (stream: 'stdout' | 'stderr', text: string) => Promise<void>,
  ): Promise<number> {
    const { view, workspace } = this.#options;
    const cwd = resolvePath(view.aliases ?? [], workspace, command.cwd ?? '.');
    if (!existsSync(cwd)) {
      // Node.js would blame the program, not the folder.
      await onOutput('stderr', `The command cannot be run: there is no folder ${cwd}\n`);
      return NOT_STARTED;
    }
    try {
      const { exitCode, timedOut } = await runCommand({
        command: [...view.wrapper, 'bash', '-c', command.command],
        cwd,
        env: { ...view.environment, ...env },
        timeoutMs: command.timeout * 1000,
        signal,
        onOutput,
      });
      if (timedOut) {
        await onOutput('stderr', `\n[the command was ended after ${command.timeout} seconds]\n`);
      }
      return exitCode ?? KILLED;
    } catch (error) {
      await onOutput('stderr', `The command cannot be run: ${errorMessage(error)}\n`);
      return NOT_STARTED;
    }
  }

  async #write(
    commandId: string,
    order: number,
    exitCode: number | null,
    piece: OutputPiece,
  ): Promise<BashOutput> {
    return await this.log.append((identity): BashOutput => ({
      kind: 'BashOutput',
      ...identity,
      id: toBashId(identity.id),
      command_id: commandId,
      order,
      exit_code: exitCode,
      ...piece,
    }));
  }
}

/** Output kept per command; further output is only counted. */
const MAX_CHARACTERS = 4_000_000;
const PIECE_CHARACTERS = 64_000;

type Stream = 'stdout' | 'stderr';

interface OutputPiece {
  stdout: string | null;
  stderr: string | null;
}

/** Collects a command's output and splits it into pieces. A secret that spans two pieces is masked too. */
export class CommandOutputBuffer {
  readonly #masker: () => SecretMasker;
  readonly #waiting: Record<Stream, string> = { stdout: '', stderr: '' };
  #kept = 0;
  #dropped = 0;

  constructor(masker: () => SecretMasker) {
    this.#masker = masker;
  }

  /** @returns whether a piece is full */
  add(stream: Stream, text: string): boolean {
    const room = MAX_CHARACTERS - this.#kept;
    const kept = this.#dropped > 0 ? '' : textHead(text, room);
    this.#waiting[stream] += kept;
    this.#kept += kept.length;
    this.#dropped += text.length - kept.length;
    return kept !== '' && this.#waiting.stdout.length + this.#waiting.stderr.length >= PIECE_CHARACTERS;
  }

  /** The output so far, null if there is none. A possible beginning of a secret at its end is held back. */
  take(): OutputPiece | null {
    const masker = this.#masker();
    const piece = {
      stdout: this.#takeStream('stdout', masker, true),
      stderr: this.#takeStream('stderr', masker, true),
    };
    return piece.stdout === null && piece.stderr === null ? null : piece;
  }

  takeRest(): OutputPiece {
    const masker = this.#masker();
    // A secret may begin where the output was cut; that beginning is dropped too.
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

  #takeStream(stream: Stream, masker: SecretMasker, isIncomplete: boolean): string | null {
    const masked = masker.text(this.#waiting[stream]);
    const end = masked.length - (isIncomplete ? masker.unfinishedLength(masked) : 0);
    this.#waiting[stream] = masked.slice(end);
    return end === 0 ? null : masked.slice(0, end);
  }
}
