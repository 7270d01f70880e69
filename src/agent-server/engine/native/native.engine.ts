import { setTimeout as sleep } from 'node:timers/promises';
import { RemoteAccess } from '../../git/remote-access.js';
import { postPullRequest } from '../../tools/pull-request.tool.js';
import {
  AgentEngine,
  type EngineContext,
  type EngineHost,
  type EngineSurroundings,
} from '../agent-engine.js';
import { AgentLoop } from './agent-loop.js';
import { askModel } from './ask-model.js';
import { Condenser } from './condenser.js';
import { type ModelOf, modelsOf } from './language-model.js';
import type { Wait } from './model-step.js';
import { NativeTools, type NativeToolsOptions } from './native-tools.js';
import { closeCalls, rejectCalls } from './tool-calls.js';

interface NativeEngineOptions extends NativeToolsOptions {
  /** Base address of Anthropic's own API. */
  anthropicUrl: string;
  /** Between two attempts to reach the model. */
  wait: Wait;
}

const DEFAULTS: NativeEngineOptions = {
  shellWrapper: [],
  pullRequests: null,
  remoteAccess: () => null,
  mcpConnectTimeoutMs: 30_000,
  anthropicUrl: 'https://api.anthropic.com/v1',
  wait: async (milliseconds, signal) => {
    await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
  },
};

interface Held {
  tools: NativeTools;
  condenser: Condenser;
}

/**
 * Our own agent: a model, asked step by step, and our tools. All that it knows about a conversation is in the log, so
 * a conversation goes on wherever its log is. Loading this module loads the AI SDK, some hundred milliseconds: import
 * it when the first conversation runs.
 */
export class NativeEngine extends AgentEngine {
  readonly #options: NativeEngineOptions;
  readonly #modelOf: ModelOf;
  /** What stays from run to run. */
  #held: Held | null = null;

  /** @param options what is not given: no isolation, no pull requests, git in the shell alone */
  constructor(options: Partial<NativeEngineOptions> = {}) {
    super();
    this.#options = { ...DEFAULTS, ...options };
    this.#modelOf = modelsOf(this.#options.anthropicUrl);
  }

  /** Calls that nobody confirmed, or that an earlier run left open, are closed with an error: nothing runs unasked. */
  async run(host: EngineHost, signal: AbortSignal): Promise<void> {
    await closeCalls(host, 'Not run, or interrupted: it has no result.');
    await this.#loop(host, signal).work();
  }

  async confirm(
    host: EngineHost,
    accept: boolean,
    reason: string | null,
    signal: AbortSignal,
  ): Promise<void> {
    if (accept) {
      await this.#loop(host, signal).workOnOpenCalls();
    } else {
      await rejectCalls(host, reason ?? 'no reason given');
      await this.#loop(host, signal).work();
    }
  }

  async ask(host: EngineHost, question: string, signal: AbortSignal): Promise<string> {
    const { wait } = this.#options;
    const { tools } = this.#open(host);
    return await askModel({ host, question, modelOf: this.#modelOf, tools, signal, wait });
  }

  async condense(host: EngineHost, signal: AbortSignal): Promise<boolean> {
    return await this.#loop(host, signal).condense();
  }

  async close(): Promise<void> {
    await this.#held?.tools.close();
    this.#held = null;
  }

  #loop(host: EngineHost, signal: AbortSignal): AgentLoop {
    const { wait } = this.#options;
    return new AgentLoop({ host, signal, wait, modelOf: this.#modelOf, ...this.#open(host) });
  }

  #open(host: EngineHost): Held {
    this.#held ??= {
      tools: new NativeTools(host, this.#options),
      condenser: new Condenser(host, this.#options.wait),
    };
    return this.#held;
  }
}

/** Our own engine for a conversation, with all that its server can offer it. */
export function createNativeEngine(
  { conversationId, gitAccess }: EngineContext,
  { webhook, sessionKeys: [sessionKey], toolWrapper, environment, conversationsPath }: EngineSurroundings,
): NativeEngine {
  const access = new RemoteAccess({
    environment,
    wrapper: toolWrapper,
    privateFolder: conversationsPath,
    credentials: () => gitAccess()?.credentials ?? [],
  });
  return new NativeEngine({
    shellWrapper: toolWrapper,
    remoteAccess: () => (isShellWithout(gitAccess()) ? access : null),
    pullRequests:
      webhook === null || sessionKey === undefined
        ? null
        : {
            open: postPullRequest({ url: `${webhook.baseUrl}/pull-requests`, sessionKey, conversationId }),
            push: async (folder, branch, signal) => await access.push(folder, branch, signal),
          },
  });
}

/** Whether there are credentials that the shell does not get. */
function isShellWithout(git: ReturnType<EngineContext['gitAccess']>): boolean {
  return git !== null && !git.expose && git.credentials.length > 0;
}
