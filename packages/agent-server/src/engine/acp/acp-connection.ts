import {
  AGENT_METHODS,
  type AnyMessage,
  client,
  CLIENT_METHODS,
  type ClientConnection,
  RequestError,
} from '@agentclientprotocol/sdk';
import type { Readable, Writable } from 'node:stream';
import type { z } from 'zod';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { clipText, LineSplitter, OutputWindow } from '../../clipped-text.js';
import { type StartedProcess, startProcess } from '../../process-tree.js';
import { inFolder, type ToolView, VIEW_START } from '../../tool-view.js';
import { loadSetup, ownVariables } from '../../tools/shell-environment.js';
import type { AcpConversation } from './acp-conversation.js';
import { permissionSchema, sessionUpdateSchema } from './acp-schemas.js';

const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** The most bytes of anything else between two messages. */
const MAX_NOISE_BYTES = 1024 * 1024;
/** Unanswered requests of the agent at which reading from it stops. */
const MAX_UNANSWERED = 64;
const MAX_REASON = 2_000;
const MAX_DIAGNOSIS = 4_000;
/** How long an agent may take to end after it has closed its connection. */
const END_GRACE_MS = 1_000;
const AUTH_REQUIRED = -32_000;
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

  constructor(
    message: string,
    readonly code: AcpFailureCode,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

interface AcpProgram {
  view: ToolView;
  command: readonly string[];
  workingDir: string;
  environment: Record<string, string>;
}

/** Lines that are no message are dropped, because some agents log between them; too long ones end the connection. */
export class AcpConnection {
  /** Tells a user whose agent is not signed in how it lets clients sign in. */
  signInHint = '';
  readonly #connection: ClientConnection;
  readonly #conversation: AcpConversation;
  readonly #ended: Promise<void>;
  readonly #kill: () => Promise<void>;
  readonly #program: string;
  readonly #hint: string;
  readonly #diagnosis = new OutputWindow(MAX_DIAGNOSIS);
  readonly #asked = new Set<unknown>();
  #unanswered = 0;
  #answered = Promise.withResolvers<void>();
  #exitCode: number | null = null;
  #fault: string | null = null;

  private constructor(
    { stdin, stdout, stderr, exited, kill }: StartedProcess,
    { view, command: [program = ''] }: AcpProgram,
    conversation: AcpConversation,
  ) {
    this.#program = program;
    this.#hint = view.wrapper.length === 0 ? '' : NOT_SHOWN;
    this.#kill = kill;
    this.#conversation = conversation;
    // Writes to an agent that has ended are lost; its end is reported by its exit.
    stdin.on('error', () => undefined);
    stderr.on('data', (chunk: Buffer) => this.#diagnosis.push(chunk));
    this.#connection = clientApp(conversation).connect({
      readable: ReadableStream.from(this.#messages(stdout)),
      writable: this.#writer(stdin),
    });
    this.#ended = this.#awaitEnd(exited);
  }

  /** @throws AcpFailure when the process cannot be started */
  static async open(program: AcpProgram, conversation: AcpConversation): Promise<AcpConnection> {
    const { view, workingDir, environment } = program;
    const prelude = loadSetup(workingDir, ownVariables(environment, view.environment));
    const command = inFolder(view, workingDir, program.command, prelude);
    const agent = { command, cwd: VIEW_START, env: environment };
    return new AcpConnection(await startProcess(agent, ['pipe', 'pipe', 'pipe']), program, conversation);
  }

  get isOpen(): boolean {
    return !this.#connection.signal.aborted;
  }

  /** A sentence that quotes what it wrote beside its messages; empty when it wrote nothing. */
  get lastWords(): string {
    const words = this.#diagnosis.text().trim();
    return words === '' ? '' : ` It wrote: ${words}`;
  }

  /** @throws AcpFailure when the agent ends before, refuses, or sends an invalid answer */
  async request<T>(method: string, params: unknown, answer: z.ZodType<T>): Promise<T> {
    let response: unknown;
    try {
      response = await this.#connection.agent.request(method, params);
    } catch (error) {
      if (error instanceof RequestError && this.isOpen) {
        throw refusal(method, error, this.signInHint);
      }
      throw await this.#failure();
    }
    const parsed = answer.safeParse(response);
    if (!parsed.success) {
      throw new AcpFailure(`The agent sent an invalid response to ${method}.`, 'ACPInitError');
    }
    return parsed.data;
  }

  async cancel(sessionId: string): Promise<void> {
    await this.#connection.agent.notify(AGENT_METHODS.session_cancel, { sessionId }).catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#conversation.terminals.close();
    this.#connection.close();
    await this.#kill();
    await this.#ended;
  }

  /** Why the connection is closed. An agent that has not ended by itself a moment later is ended. */
  async #failure(): Promise<AcpFailure> {
    const timer = setTimeout(() => void this.#kill(), END_GRACE_MS);
    await this.#ended;
    clearTimeout(timer);
    if (this.#fault !== null) {
      return new AcpFailure(this.#fault, 'ACPProtocolError');
    }
    if (this.#exitCode === NOT_FOUND || this.#exitCode === NO_FOLDER_OR_RIGHT) {
      const why = this.#exitCode === NOT_FOUND ? 'was not found' : 'cannot be run';
      const message = `The agent is not installed in this sandbox: its command ${this.#program} ${why}.`;
      return new AcpFailure(`${message}${this.#hint}${this.lastWords}`, 'ACPSpawnError');
    }
    const how = this.#exitCode === null ? 'closed its connection' : `ended with exit code ${this.#exitCode}`;
    return new AcpFailure(`The agent ${how}.${this.lastWords}`, 'ACPAgentEnded');
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
          await this.#update(message.params);
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

  async #update(params: unknown): Promise<void> {
    const parsed = sessionUpdateSchema.safeParse(params);
    if (parsed.success) {
      await this.#conversation.update(parsed.data.sessionId, parsed.data.update);
    }
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

/** What an agent may ask its client for. The agent gets the message of an error. */
function clientApp(conversation: AcpConversation): ReturnType<typeof client> {
  const { terminals } = conversation;
  return client({ name: 'slipway' })
    .onRequest(CLIENT_METHODS.session_request_permission, permissionSchema, async ({ params }) => ({
      outcome: await conversation.requestPermission(params),
    }))
    .onRequest(CLIENT_METHODS.fs_read_text_file, async ({ params }) => ({
      content: await conversation.readTextFile(params),
    }))
    .onRequest(CLIENT_METHODS.fs_write_text_file, ({ params }) => conversation.writeTextFile(params))
    .onRequest(CLIENT_METHODS.terminal_create, async ({ params }) => ({
      terminalId: await terminals.create(params),
    }))
    .onRequest(CLIENT_METHODS.terminal_output, ({ params }) => terminals.output(params.terminalId))
    .onRequest(CLIENT_METHODS.terminal_wait_for_exit, ({ params }) => terminals.wait(params.terminalId))
    .onRequest(CLIENT_METHODS.terminal_kill, ({ params }) => terminals.kill(params.terminalId))
    .onRequest(CLIENT_METHODS.terminal_release, ({ params }) => terminals.release(params.terminalId));
}

function refusal(method: string, error: RequestError, signInHint: string): AcpFailure {
  const more = detailOf(error);
  const text = clipText(more === null ? error.message : `${error.message}: ${more}`, MAX_REASON);
  if (error.code === AUTH_REQUIRED || /\b(401|unauthorized|authentication)\b/i.test(text)) {
    return new AcpFailure(
      `The agent is not signed in: ${text.replace(/\.$/, '')}. It takes its credentials from its environment only: see which secrets the operator's list of agents names for it, and set them.${signInHint}`,
      'ACPAuthRequired',
      { cause: error },
    );
  }
  return new AcpFailure(`The agent refused ${method}: ${text}`, 'ACPPromptError', { cause: error });
}

function detailOf({ code, data }: RequestError): string | null {
  if (typeof data !== 'object' || data === null) {
    return typeof data === 'string' ? data : null;
  }
  const said = jsonText(data, 'details') ?? jsonText(data, 'message');
  // Some repeat their sign-in methods there.
  return said ?? (code === AUTH_REQUIRED ? null : JSON.stringify(data));
}
