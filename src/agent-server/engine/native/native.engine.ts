import { setTimeout as sleep } from 'node:timers/promises';
import { AgentEngine, type EngineHost } from '../agent-engine.js';
import { AgentLoop } from './agent-loop.js';
import { ContextSize } from './context-size.js';
import { NativeTools, type NativeToolsOptions } from './native-tools.js';
import type { Wait } from './patient-step.js';

export interface NativeEngineOptions extends NativeToolsOptions {
  /** Between two attempts to reach the model. */
  wait: Wait;
}

const DEFAULTS: NativeEngineOptions = {
  shellWrapper: [],
  pullRequests: null,
  checkUrl: async () => null,
  mcpConnectTimeoutMs: 30_000,
  wait: async (milliseconds, signal) => {
    await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
  },
};

/**
 * Our own agent: a model, asked step by step, and our tools. All that it knows about a conversation is in the log, so
 * a conversation goes on wherever its log is. Loading this module loads the AI SDK, some hundred milliseconds: import
 * it when the first conversation runs.
 */
export class NativeEngine extends AgentEngine {
  readonly #options: NativeEngineOptions;
  readonly #size = new ContextSize();
  #tools: NativeTools | null = null;

  /** @param options what is not given: no isolation, no pull requests, every address of a tool server */
  constructor(options: Partial<NativeEngineOptions> = {}) {
    super();
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Calls that nobody confirmed, or that an earlier run left open, are closed with an error: nothing runs unasked. */
  async run(host: EngineHost, signal: AbortSignal): Promise<void> {
    const loop = this.#loop(host, signal);
    await loop.closeOpenCalls();
    await loop.work();
  }

  async confirm(
    host: EngineHost,
    accept: boolean,
    reason: string | null,
    signal: AbortSignal,
  ): Promise<void> {
    const loop = this.#loop(host, signal);
    if (accept) {
      await loop.runOpenCalls();
    } else {
      await loop.rejectOpenCalls(reason ?? 'no reason given');
      await loop.work();
    }
  }

  async close(): Promise<void> {
    await this.#tools?.close();
    this.#tools = null;
  }

  #loop(host: EngineHost, signal: AbortSignal): AgentLoop {
    this.#tools ??= new NativeTools(host, this.#options);
    return new AgentLoop({
      host,
      signal,
      tools: this.#tools,
      size: this.#size,
      wait: this.#options.wait,
    });
  }
}
