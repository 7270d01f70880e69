import {
  Client,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SSEClientTransport,
  SseError,
  StreamableHTTPClientTransport,
  type Transport,
  type JSONRPCMessage,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { McpServer } from '@slipway/agent-protocol/conversation-api.js';
import { within } from '@slipway/common/async.js';
import { errorWithCauses } from '@slipway/common/errors/error-message.js';
import { errorName } from '../../observability.js';
import { type CheckUrl, RefusedMessageError, remoteFetch } from './remote-fetch.js';
import { LineSplitter, OutputWindow } from '../../clipped-text.js';
import { readToEnd, type Program, type StartedProcess, startProcess } from '../../process-tree.js';
import { terminalText } from '../terminal-screen.js';
import { repairedMessages } from './server-answers.js';

const CLOSE_TIMEOUT_MS = 2_000;
const END_GRACE_MS = 2_000;
/** Limit of a request whose server reports progress again and again. */
const MAX_TOTAL_MS = 3_600_000;

export interface McpSessionOptions {
  workingDir: string;
  /** Environment of child processes; the server's own variables are added. */
  environment: Record<string, string>;
  wrapper: readonly string[];
  checkUrl: CheckUrl;
}

export interface McpRequestOptions {
  signal: AbortSignal;
  /** How long the server may show no progress. */
  timeoutMs: number;
}

/** Results are read member by member: a strict schema would refuse a whole result for one part of it. */
const anyResult = z.object({ given: z.looseObject({}) });

/** One session with a tool server, from the handshake to its end. */
export class McpSession {
  readonly #client: Client;
  readonly #transport: StdioTransport | StreamableHTTPClientTransport | SSEClientTransport;
  #isAlive = true;
  /** Whether the server has said that it does not know the session any more; it did nothing with the request then. */
  isLost = false;
  #isListStale = false;
  /** Whether the stream of announcements has ended, which proxies do to idle ones. */
  #isDeaf = false;
  /** Aborts the request that is under way: the client would wait for a response until the time-out. */
  #unanswered: AbortController | null = null;

  private constructor(server: McpServer, options: McpSessionOptions, mode: 'legacy' | 'auto') {
    this.#client = new Client({ name: 'slipway', version: '1' }, { versionNegotiation: { mode } });
    this.#transport =
      'command' in server ? stdioTransport(server, options) : this.#remote(server, options.checkUrl);
    Object.assign(this.#client, {
      onclose: () => {
        this.#isAlive = false;
      },
      onerror: (error: Error) => {
        // A stream that broke is opened again, but no server knows the session that belonged to it.
        if (error instanceof SseError) {
          void this.#client.close();
        }
      },
    });
    this.#client.setNotificationHandler('notifications/tools/list_changed', () => {
      this.#isListStale = true;
    });
  }

  /** @throws Error when the server cannot be started or reached, refuses, or takes too long */
  static async open(
    server: McpServer,
    options: McpSessionOptions,
    request: McpRequestOptions,
  ): Promise<McpSession> {
    try {
      return await McpSession.#open(server, options, request, 'legacy');
    } catch (error) {
      if (!hasNoHandshake(error)) {
        throw error;
      }
      // Last, because some servers with a handshake end, keep silent or refuse the key when asked for anything before it.
      return await McpSession.#open(server, options, request, 'auto').catch(() => Promise.reject(error));
    }
  }

  static async #open(
    server: McpServer,
    options: McpSessionOptions,
    request: McpRequestOptions,
    mode: 'legacy' | 'auto',
  ): Promise<McpSession> {
    const session = new McpSession(server, options, mode);
    try {
      const transport: Transport = session.#transport;
      await session.#request(request, async (given) => {
        // The handshake's notification has no time-out of its own.
        const { promise: aborted, reject } = Promise.withResolvers<never>();
        given.signal.addEventListener('abort', () => reject(given.signal.reason), { once: true });
        await Promise.race([session.#client.connect(transport, given), aborted]);
      });
      void session.#listen();
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  get isAlive(): boolean {
    return this.#isAlive && !this.isLost;
  }

  /** Why a program has ended, and what it wrote; null when that is not known. */
  get endReason(): string | null {
    if (!(this.#transport instanceof StdioTransport) || this.#transport.endReason === null) {
      return null;
    }
    return withErrorText(this.#transport.endReason, this.#transport);
  }

  /** Whether the server has announced other tools since this was asked for the last time. */
  takeListChange(): boolean {
    const isStale = this.#isListStale;
    this.#isListStale = false;
    if (this.#isDeaf) {
      this.#isDeaf = false;
      void this.#listen();
    }
    return isStale;
  }

  /** @throws Error with a reason for people, when the server refuses or does not answer */
  async request(
    method: 'tools/list' | 'tools/call',
    params: Record<string, unknown>,
    options: McpRequestOptions,
  ): Promise<Record<string, unknown>> {
    const { given } = await this.#request(
      options,
      async (sent) => await this.#client.request({ method, params }, anyResult, sent),
    );
    return given;
  }

  async close(): Promise<void> {
    if (this.#transport instanceof StreamableHTTPClientTransport && this.isAlive) {
      // Servers may refuse to end a session, and may be gone.
      await within(CLOSE_TIMEOUT_MS, this.#transport.terminateSession()).catch(() => undefined);
    }
    this.#isAlive = false;
    await this.#client.close();
    // Also when the handshake has not come so far that the client would close it.
    await this.#transport.close();
  }

  /** Servers without sessions announce changes only to clients that listen. */
  async #listen(): Promise<void> {
    const announces = this.#client.getServerCapabilities()?.tools?.listChanged;
    if (announces && this.#client.getProtocolEra() === 'modern') {
      try {
        const { closed } = await this.#client.listen({ toolsListChanged: true });
        await closed;
        this.#isDeaf = true;
        this.#isListStale = true;
      } catch {
        // Then it announces nothing, like most servers.
      }
    }
  }

  async #request<T>(
    { signal, timeoutMs }: McpRequestOptions,
    send: (options: SdkOptions) => Promise<T>,
  ): Promise<T> {
    const unanswered = new AbortController();
    this.#unanswered = unanswered;
    try {
      return await send({
        signal: AbortSignal.any([signal, unanswered.signal]),
        timeout: timeoutMs,
        resetTimeoutOnProgress: true,
        maxTotalTimeout: Math.max(timeoutMs, MAX_TOTAL_MS),
        onprogress: () => undefined,
      });
    } catch (error) {
      throw this.#explained(error, signal, timeoutMs);
    } finally {
      this.#unanswered = null;
    }
  }

  #explained(error: unknown, { aborted, reason }: AbortSignal, timeoutMs: number): Error {
    const isTooLate = aborted && errorName(reason) === 'TimeoutError';
    if (aborted && !isTooLate) {
      return new Error('the call was interrupted', { cause: error });
    }
    if (isTooLate || (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)) {
      const silence = `no response within ${timeoutMs / 1000} s`;
      const isProgram = this.#transport instanceof StdioTransport;
      return new Error(isProgram ? withErrorText(silence, this.#transport) : silence, { cause: error });
    }
    return new Error(this.endReason ?? errorWithCauses(error), { cause: error });
  }

  #remote(
    server: Extract<McpServer, { url: string }>,
    checkUrl: CheckUrl,
  ): StreamableHTTPClientTransport | SSEClientTransport {
    const isStream = server.transport === 'sse';
    const options = {
      requestInit: { headers: server.headers ?? {} },
      fetch: remoteFetch({
        checkUrl,
        isAlwaysInSession: isStream,
        onSessionLost: () => {
          this.isLost = true;
        },
        onUnanswered: (reason) => {
          this.#unanswered?.abort(new SdkError(SdkErrorCode.ConnectionClosed, reason));
        },
      }),
    };
    const url = new URL(server.url);
    return isStream ? new SSEClientTransport(url, options) : new StreamableHTTPClientTransport(url, options);
  }
}

/** Whether a server knows only revisions since 2026-07-28, which have no handshake and no sessions. */
function hasNoHandshake(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof RefusedMessageError || cause instanceof ProtocolError ? cause.code : null;
  return code === ProtocolErrorCode.UnsupportedProtocolVersion || code === ProtocolErrorCode.MethodNotFound;
}

/** The status with which a server has refused to begin a session; undefined for everything else. */
export function refusedStatus(error: unknown): number | undefined {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof RefusedMessageError) {
    return cause.status;
  }
  return cause instanceof SseError ? cause.code : undefined;
}

type SdkOptions = Exclude<Parameters<Client['request']>[2], undefined> & { signal: AbortSignal };

function stdioTransport(
  server: Extract<McpServer, { command: string }>,
  { workingDir, environment, wrapper }: McpSessionOptions,
): StdioTransport {
  const command = [...wrapper, server.command, ...(server.args ?? [])];
  return new StdioTransport({ command, cwd: workingDir, env: { ...environment, ...server.env } });
}

function withErrorText(reason: string, { errorText }: StdioTransport): string {
  return errorText === null ? reason : `${reason}; on standard error it wrote:\n${errorText}`;
}

const MAX_LINE_BYTES = 16 * 1024 * 1024;
const MAX_ERROR_TEXT = 2_000;

/** MCP with a child process, one JSON message per line. Unlike the SDK's, closing kills everything that it started. */
class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #program: Program;
  readonly #errorText = new OutputWindow(MAX_ERROR_TEXT);
  readonly #ended = Promise.withResolvers<void>();
  #process: StartedProcess | null = null;
  /** Why nothing comes from the process any more; null while it runs. */
  endReason: string | null = null;

  constructor(program: Program) {
    this.#program = program;
  }

  /** @throws Error when the program cannot be started */
  async start(): Promise<void> {
    this.#process = await startProcess(this.#program, ['pipe', 'pipe', 'pipe']);
    const { child, stdin, stdout, stderr } = this.#process;
    stderr.on('data', (chunk: Buffer) => this.#errorText.push(chunk));
    stdin.on('error', (error) => this.onerror?.(error));
    const lines = new LineSplitter(MAX_LINE_BYTES);
    stdout.on('data', (chunk: Buffer) => {
      const complete = lines.push(chunk);
      if (complete === null) {
        this.endReason = 'it wrote a line that is too long';
        stdout.destroy();
        void this.close();
        return;
      }
      complete.forEach((line) => this.#receive(line));
    });
    child.once('exit', (code, killedBy) => {
      const how = killedBy === null ? `it ended with exit code ${code}` : `it was ended by ${killedBy}`;
      this.endReason ??= how;
      // The last output of a process is worth the most.
      this.#ended.resolve(readToEnd([stdout, stderr]));
      void this.#ended.promise.then(() => this.onclose?.());
    });
  }

  get errorText(): string | null {
    const text = terminalText(this.#errorText.text()).replaceAll('\0', '').toWellFormed().trim();
    return text === '' ? null : text;
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin;
    if (!stdin?.writable) {
      throw new Error('the tool server has ended');
    }
    const written = Promise.withResolvers<void>();
    stdin.write(`${JSON.stringify(message)}\n`, (error) =>
      error ? written.reject(error) : written.resolve(),
    );
    try {
      await written.promise;
    } catch (error) {
      // The input of a program that ends is closed a moment before it is known how that has ended.
      await within(END_GRACE_MS, this.#ended.promise);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#process?.kill();
  }

  /** Programs write more than messages to standard output; other lines are skipped. */
  #receive(line: string): void {
    repairedMessages(line.trim()).forEach((message) => this.onmessage?.(message));
  }
}
