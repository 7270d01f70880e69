import { type AnyMessage, CLIENT_METHODS, type Stream } from '@agentclientprotocol/sdk';
import type { Readable, Writable } from 'node:stream';
import { parseJson } from '@slipway/common/json-access.js';
import { LineSplitter, OutputWindow } from '../../clipped-text.js';
import { type StartedProcess, startProcess } from '../../process-tree.js';
import { inFolder, type ToolView, VIEW_START } from '../../tool-view.js';
import { loadSetup, ownVariables } from '../../tools/shell-session.js';

const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** Between two messages. */
const MAX_NOISE_BYTES = 1024 * 1024;
/** Unanswered requests of the agent at which reading from it stops. */
const MAX_UNANSWERED = 64;
const MAX_DIAGNOSIS = 4_000;
/** How long an agent may take to end after it has closed its connection. */
const END_GRACE_MS = 1_000;
const NO_FOLDER_OR_RIGHT = 126;
const NOT_FOUND = 127;

const NOT_SHOWN =
  ' Process sandboxes see the system folders of their machine, and what its operator names in SANDBOX_READ_PATHS.';

type AcpFailureCode =
  /** The agent cannot be started, has ended, or writes something else. The message quotes its last output. */
  | 'ACPSpawnError'
  | 'ACPAgentEnded'
  | 'ACPProtocolError'
  /** It refused a request, or sent no valid answer in time. The message may quote it. */
  | 'ACPAuthRequired'
  | 'ACPStartupTimeout'
  | 'ACPPromptError'
  | 'ACPInitError';

/** The message is for the user. */
export class AcpFailure extends Error {
  override readonly name = 'AcpFailure';
  readonly code: AcpFailureCode;

  constructor(message: string, code: AcpFailureCode, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export interface AcpProcessOptions {
  view: ToolView;
  command: readonly string[];
  workingDir: string;
  environment: Record<string, string>;
  /** Takes one update of a session; no more is read before its promise settles. Must not reject. */
  onUpdate: (params: unknown) => Promise<void>;
}

/** Lines that are no message are dropped, because some agents log between them; too long ones end the connection. */
export class AcpProcess {
  readonly stream: Stream;
  readonly ended: Promise<void>;
  readonly #kill: () => Promise<void>;
  readonly #program: string;
  readonly #hint: string;
  readonly #diagnosis = new OutputWindow(MAX_DIAGNOSIS);
  readonly #onUpdate: (params: unknown) => Promise<void>;
  readonly #asked = new Set<unknown>();
  #unanswered = 0;
  #answered = Promise.withResolvers<void>();
  #exitCode: number | null = null;
  #fault: string | null = null;

  private constructor(
    { stdin, stdout, stderr, exited, kill }: StartedProcess,
    { view, command: [program = ''], onUpdate }: AcpProcessOptions,
  ) {
    this.#program = program;
    this.#hint = view.wrapper.length === 0 ? '' : NOT_SHOWN;
    this.#kill = kill;
    this.#onUpdate = onUpdate;
    // Writes to an agent that has ended are lost; its end is reported by its exit.
    stdin.on('error', () => undefined);
    stderr.on('data', (chunk: Buffer) => this.#diagnosis.push(chunk));
    this.stream = { readable: ReadableStream.from(this.#messages(stdout)), writable: this.#writer(stdin) };
    this.ended = this.#awaitEnd(exited);
  }

  /** @throws AcpFailure when it cannot be started */
  static async start(options: AcpProcessOptions): Promise<AcpProcess> {
    const { view, command, workingDir, environment } = options;
    const started = await startProcess(
      {
        command: inFolder(
          view,
          workingDir,
          command,
          loadSetup(workingDir, ownVariables(environment, view.environment)),
        ),
        cwd: VIEW_START,
        env: environment,
      },
      ['pipe', 'pipe', 'pipe'],
    );
    return new AcpProcess(started, options);
  }

  failure(): AcpFailure {
    if (this.#fault !== null) {
      return new AcpFailure(this.#fault, 'ACPProtocolError');
    }
    if (this.#exitCode === NOT_FOUND || this.#exitCode === NO_FOLDER_OR_RIGHT) {
      return new AcpFailure(
        `The agent is not installed in this sandbox: its command ${this.#program} ${
          this.#exitCode === NOT_FOUND ? 'was not found' : 'cannot be run'
        }.${this.#hint}${this.lastWords}`,
        'ACPSpawnError',
      );
    }
    const how = this.#exitCode === null ? 'closed its connection' : `ended with exit code ${this.#exitCode}`;
    return new AcpFailure(`The agent ${how}.${this.lastWords}`, 'ACPAgentEnded');
  }

  /** Waits a moment for an agent that has closed its connection to end, then ends it. */
  async settle(): Promise<void> {
    const timer = setTimeout(() => void this.#kill(), END_GRACE_MS);
    await this.ended;
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    await this.#kill();
    await this.ended;
  }

  async #awaitEnd(exited: Promise<number>): Promise<void> {
    try {
      this.#exitCode = await exited;
    } catch {
      // Once the process has started, an error means that it could not be signalled, not that it has ended.
      return;
    }
    // Also after a normal exit: processes that it started may still run.
    await this.#kill();
  }

  /** A sentence that quotes what it wrote beside its messages; empty when it wrote nothing. */
  get lastWords(): string {
    const words = this.#diagnosis.text().trim();
    return words === '' ? '' : ` It wrote: ${words}`;
  }

  // What the SDK reads. It does not wait for its handlers, so updates bypass it and are handled here one by one: an
  // agent that writes faster than its events are stored has to wait.
  async *#messages(stdout: Readable): AsyncGenerator<AnyMessage> {
    const lines = new LineSplitter(MAX_LINE_BYTES);
    let noise = 0;
    for await (const chunk of stdout) {
      const complete = lines.push(Buffer.from(chunk));
      if (complete === null) {
        this.#fault = 'The agent wrote a line that is too long.';
        throw new Error(this.#fault);
      }
      for (const line of complete) {
        const message = parseJson(line);
        if (isUpdate(message)) {
          await this.#onUpdate(message.params);
          noise = 0;
        } else if (this.#isMessage(message)) {
          noise = 0;
          yield message;
          while (this.#unanswered >= MAX_UNANSWERED) {
            await this.#answered.promise;
          }
        } else if (!isEnvelope(message)) {
          // Some agents say on this stream why they end.
          this.#diagnosis.push(Buffer.from(`${line}\n`));
          if ((noise += line.length) > MAX_NOISE_BYTES) {
            this.#fault = 'The agent writes something other than the Agent Client Protocol.';
            throw new Error(this.#fault);
          }
        }
      }
    }
  }

  /** Whether the SDK should get the message: a request, or the answer to a request of ours. */
  #isMessage(value: unknown): value is AnyMessage {
    if (!isEnvelope(value)) {
      return false;
    }
    if (value.method !== undefined) {
      const isRequest = typeof value.method === 'string' && isId(value.id);
      this.#unanswered += isRequest ? 1 : 0;
      return isRequest;
    }
    return this.#asked.delete(value.id);
  }

  #writer(stdin: Writable): WritableStream<AnyMessage> {
    return new WritableStream<AnyMessage>({
      write: async (message) => {
        if (!('method' in message)) {
          this.#unanswered -= 1;
          this.#answered.resolve();
          this.#answered = Promise.withResolvers<void>();
        } else if ('id' in message) {
          this.#asked.add(message.id);
        }
        const line = `${JSON.stringify(message)}\n`;
        await new Promise<void>((resolve, reject) => {
          stdin.write(line, (error) => (error ? reject(error) : resolve()));
        });
      },
    });
  }
}

interface Envelope {
  id?: unknown;
  method?: unknown;
  params?: unknown;
}

function isEnvelope(value: unknown): value is Envelope {
  return typeof value === 'object' && value !== null && 'jsonrpc' in value && value.jsonrpc === '2.0';
}

function isUpdate(value: unknown): value is Envelope {
  return isEnvelope(value) && value.id === undefined && value.method === CLIENT_METHODS.session_update;
}

function isId(id: unknown): boolean {
  return typeof id === 'string' || typeof id === 'number';
}
