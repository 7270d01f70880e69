import {
  AGENT_METHODS,
  client,
  CLIENT_METHODS,
  type ClientConnection,
  RequestError,
} from '@agentclientprotocol/sdk';
import type { z } from 'zod';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { clipText } from '../../clipped-text.js';
import { AcpProcess, AcpProcessError, type AcpProcessOptions } from './acp-process.js';
import {
  createTerminalSchema,
  permissionSchema,
  readFileSchema,
  sessionUpdateSchema,
  type SessionUpdate,
  terminalSchema,
  writeFileSchema,
} from './acp-schemas.js';

const MAX_REASON = 2_000;
const AUTH_REQUIRED = -32_000;

export type PermissionRequest = z.infer<typeof permissionSchema>;
export type ReadFileRequest = z.infer<typeof readFileSchema>;
export type WriteFileRequest = z.infer<typeof writeFileSchema>;
export type CreateTerminalRequest = z.infer<typeof createTerminalSchema>;
export type TerminalRequest = z.infer<typeof terminalSchema>;

export type PermissionOutcome = { outcome: 'selected'; optionId: string } | { outcome: 'cancelled' };

export interface ExitStatus {
  exitCode: number | null;
  signal: string | null;
}

/** What an agent may ask its client for. The agent gets the message of an error. */
export interface AcpClient {
  /** Must not reject; the agent's next message is read when it resolves. */
  update(sessionId: string, update: SessionUpdate): Promise<void>;
  requestPermission(request: PermissionRequest): Promise<PermissionOutcome>;
  readTextFile(request: ReadFileRequest): Promise<string>;
  writeTextFile(request: WriteFileRequest): Promise<void>;
  createTerminal(request: CreateTerminalRequest): Promise<string>;
  terminalOutput(request: TerminalRequest): { output: string; truncated: boolean; exitStatus?: ExitStatus };
  waitForTerminal(request: TerminalRequest): Promise<ExitStatus>;
  killTerminal(request: TerminalRequest): Promise<void>;
  releaseTerminal(request: TerminalRequest): Promise<void>;
}

/** The agent refused a request or sent an invalid response. The message is for the user, and may quote the agent. */
export class AcpRequestError extends Error {
  constructor(
    message: string,
    readonly code: 'ACPAuthRequired' | 'ACPStartupTimeout' | 'ACPPromptError' | 'ACPInitError',
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'AcpRequestError';
  }
}

export class AcpConnection {
  readonly #process: AcpProcess;
  readonly #connection: ClientConnection;

  private constructor(process: AcpProcess, connection: ClientConnection) {
    this.#process = process;
    this.#connection = connection;
  }

  /** @throws AcpProcessError when the process cannot be started */
  static async open(
    options: Omit<AcpProcessOptions, 'onUpdate'>,
    handlers: AcpClient,
  ): Promise<AcpConnection> {
    const process = await AcpProcess.start({
      ...options,
      onUpdate: async (params) => {
        const parsed = sessionUpdateSchema.safeParse(params);
        if (parsed.success) {
          await handlers.update(parsed.data.sessionId, parsed.data.update);
        }
      },
    });
    return new AcpConnection(process, clientApp(handlers).connect(process.stream));
  }

  get isOpen(): boolean {
    return !this.#connection.signal.aborted;
  }

  /**
   * Sends a request and checks its answer.
   * @throws AcpProcessError when the agent ends before, AcpRequestError when it refuses or its answer is invalid
   */
  async request<T>(method: string, params: unknown, answer: z.ZodType<T>): Promise<T> {
    let response: unknown;
    try {
      response = await this.#connection.agent.request(method, params);
    } catch (error) {
      if (error instanceof RequestError && this.isOpen) {
        throw refusal(method, error);
      }
      throw await this.failure();
    }
    const parsed = answer.safeParse(response);
    if (!parsed.success) {
      throw new AcpRequestError(`The agent sent an invalid response to ${method}.`, 'ACPInitError');
    }
    return parsed.data;
  }

  async cancel(sessionId: string): Promise<void> {
    await this.#connection.agent.notify(AGENT_METHODS.session_cancel, { sessionId }).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#connection.close();
    await this.#process.kill();
  }

  /** Why the connection is closed. The process is ended, if it has not ended by itself. */
  async failure(): Promise<AcpProcessError> {
    await this.#process.settle();
    return this.#process.failure();
  }
}

function clientApp(handlers: AcpClient): ReturnType<typeof client> {
  return client({ name: 'slipway' })
    .onRequest(CLIENT_METHODS.session_request_permission, permissionSchema, async ({ params }) => ({
      outcome: await handlers.requestPermission(params),
    }))
    .onRequest(CLIENT_METHODS.fs_read_text_file, readFileSchema, async ({ params }) => ({
      content: await handlers.readTextFile(params),
    }))
    .onRequest(CLIENT_METHODS.fs_write_text_file, writeFileSchema, async ({ params }) => {
      await handlers.writeTextFile(params);
      return {};
    })
    .onRequest(CLIENT_METHODS.terminal_create, createTerminalSchema, async ({ params }) => ({
      terminalId: await handlers.createTerminal(params),
    }))
    .onRequest(CLIENT_METHODS.terminal_output, terminalSchema, ({ params }) =>
      handlers.terminalOutput(params),
    )
    .onRequest(
      CLIENT_METHODS.terminal_wait_for_exit,
      terminalSchema,
      async ({ params }) => await handlers.waitForTerminal(params),
    )
    .onRequest(CLIENT_METHODS.terminal_kill, terminalSchema, async ({ params }) => {
      await handlers.killTerminal(params);
      return {};
    })
    .onRequest(CLIENT_METHODS.terminal_release, terminalSchema, async ({ params }) => {
      await handlers.releaseTerminal(params);
      return {};
    });
}

function refusal(method: string, error: RequestError): AcpRequestError {
  const more = typeof error.data === 'string' ? error.data : detailOf(error.data);
  const text = clipText(more === null ? error.message : `${error.message}: ${more}`, MAX_REASON);
  if (error.code === AUTH_REQUIRED || /\b(401|unauthorized|authentication)\b/i.test(text)) {
    return new AcpRequestError(
      `The agent is not signed in: ${text} It takes its credentials from its environment only: see which secrets the operator's list of agents names for it, and set them.`,
      'ACPAuthRequired',
      { cause: error },
    );
  }
  return new AcpRequestError(`The agent refused ${method}: ${text}`, 'ACPPromptError', { cause: error });
}

function detailOf(data: unknown): string | null {
  if (typeof data !== 'object' || data === null) {
    return null;
  }
  const { details, message } = { details: undefined, message: undefined, ...data };
  if (typeof details === 'string') {
    return details;
  }
  try {
    return typeof message === 'string' ? message : JSON.stringify(data);
  } catch (error) {
    return errorMessage(error);
  }
}
