import {
  AGENT_METHODS,
  client,
  CLIENT_METHODS,
  type ClientConnection,
  RequestError,
} from '@agentclientprotocol/sdk';
import type { z } from 'zod';
import { jsonText } from '@slipway/common/json-access.js';
import { clipText } from '../../clipped-text.js';
import type { AcpConversation } from './acp-conversation.js';
import { AcpFailure, AcpProcess, type AcpProcessOptions } from './acp-process.js';
import {
  createTerminalSchema,
  permissionSchema,
  readFileSchema,
  sessionUpdateSchema,
  terminalSchema,
  writeFileSchema,
} from './acp-schemas.js';

const MAX_REASON = 2_000;
const AUTH_REQUIRED = -32_000;

export class AcpConnection {
  readonly #process: AcpProcess;
  readonly #connection: ClientConnection;
  /** For a user whose agent is not signed in: how it lets clients sign in. */
  signInHint = '';

  private constructor(process: AcpProcess, connection: ClientConnection) {
    this.#process = process;
    this.#connection = connection;
  }

  /** @throws AcpFailure when the process cannot be started */
  static async open(
    options: Omit<AcpProcessOptions, 'onUpdate'>,
    conversation: AcpConversation,
  ): Promise<AcpConnection> {
    const process = await AcpProcess.start({
      ...options,
      onUpdate: async (params) => {
        const parsed = sessionUpdateSchema.safeParse(params);
        if (parsed.success) {
          await conversation.update(parsed.data.sessionId, parsed.data.update);
        }
      },
    });
    return new AcpConnection(process, clientApp(conversation).connect(process.stream));
  }

  get isOpen(): boolean {
    return !this.#connection.signal.aborted;
  }

  get lastWords(): string {
    return this.#process.lastWords;
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
      throw await this.failure();
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
    this.#connection.close();
    await this.#process.kill();
  }

  /** Why the connection is closed. The process is ended, if it has not ended by itself. */
  async failure(): Promise<AcpFailure> {
    await this.#process.settle();
    return this.#process.failure();
  }
}

/** What an agent may ask its client for. The agent gets the message of an error. */
function clientApp(conversation: AcpConversation): ReturnType<typeof client> {
  const { terminals } = conversation;
  return client({ name: 'slipway' })
    .onRequest(CLIENT_METHODS.session_request_permission, permissionSchema, async ({ params }) => ({
      outcome: await conversation.requestPermission(params),
    }))
    .onRequest(CLIENT_METHODS.fs_read_text_file, readFileSchema, async ({ params }) => ({
      content: await conversation.readTextFile(params),
    }))
    .onRequest(CLIENT_METHODS.fs_write_text_file, writeFileSchema, async ({ params }) => {
      await conversation.writeTextFile(params);
      return {};
    })
    .onRequest(CLIENT_METHODS.terminal_create, createTerminalSchema, async ({ params }) => ({
      terminalId: await terminals.create(params),
    }))
    .onRequest(CLIENT_METHODS.terminal_output, terminalSchema, ({ params }) =>
      terminals.output(params.terminalId),
    )
    .onRequest(CLIENT_METHODS.terminal_wait_for_exit, terminalSchema, ({ params }) =>
      terminals.wait(params.terminalId),
    )
    .onRequest(CLIENT_METHODS.terminal_kill, terminalSchema, async ({ params }) => {
      await terminals.kill(params.terminalId);
      return {};
    })
    .onRequest(CLIENT_METHODS.terminal_release, terminalSchema, async ({ params }) => {
      await terminals.release(params.terminalId);
      return {};
    });
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
