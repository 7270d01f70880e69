import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import {
  AgentEngine,
  type Draft,
  type EngineHost,
  AgentUnavailableError,
} from '../../src/engine/agent-engine.js';
import { callResult, openCalls, rejectOpenCalls } from '../../src/engine/agent-events.js';
import { actionEvent, condensationEvent, messageEvent } from '../../../../test/fakes/sample-events.js';

/** A conversation that works without a pause takes a whole processor from the tests beside it. */
const STEP_MS = 2;

/**
 * An engine without a model: the first word of the last message tells it what to do.
 *
 * `say X` answers X and finishes; `call X` calls a tool and hangs in it until it is aborted; `step` works until it is told
 * to pause; `ask X` calls a tool that waits for confirmation; `fail X` throws; `env NAME` answers the value of a variable,
 * `length NAME` its length; `settings` answers its settings; `spend` uses tokens and finishes; `read` finishes once there
 * is a later message; `write X` shows the drafts that a test gives it, and then answers X.
 */
export class FakeEngine extends AgentEngine {
  readonly confirmations: (string | null)[] = [];
  /** Set by `write`. */
  showDraft: ((draft: Draft | null) => void) | null = null;
  readonly written = Promise.withResolvers<void>();

  override async run(host: EngineHost, signal: AbortSignal): Promise<void> {
    const [command = '', ...words] = lastMessage(host.events()).split(' ');
    const rest = words.join(' ');
    switch (command) {
      case 'call':
        await call(host, rest);
        await aborted(signal);
        return;
      case 'step':
        while (!host.pauseSignal().aborted && !signal.aborted) {
          await delay(STEP_MS);
        }
        await host.setStatus('paused');
        return;
      case 'ask':
        await call(host, rest);
        await host.setStatus('waiting_for_confirmation');
        return;
      case 'fail':
        throw new Error(rest);
      case 'env':
        await answer(host, host.toolEnvironment()[rest] ?? 'unset');
        return;
      case 'length':
        await answer(host, String(host.toolEnvironment()[rest]?.length));
        return;
      case 'settings':
        await answer(host, JSON.stringify(host.settings));
        return;
      case 'spend':
        await host.addUsage({
          promptTokens: 10,
          completionTokens: 5,
          costUsd: 0.25,
          costSource: 'catalogue',
          isStep: true,
        });
        await answer(host, JSON.stringify(host.totals()));
        return;
      case 'write':
        this.showDraft = (draft) => host.showDraft(draft && (() => draft));
        await this.written.promise;
        await answer(host, rest);
        return;
      case 'read': {
        const before = host.events().length;
        while (
          host
            .events()
            .slice(before)
            .every(({ kind }) => kind !== 'MessageEvent') &&
          !signal.aborted
        ) {
          await delay(STEP_MS);
        }
        // Like an engine that had already decided to finish.
        await host.setStatus('finished');
        return;
      }
      default:
        await answer(host, rest);
    }
  }

  override async confirm(host: EngineHost, rejection: string | null): Promise<void> {
    this.confirmations.push(rejection);
    if (rejection !== null) {
      await rejectOpenCalls(host, rejection);
    }
    const observation = { kind: 'ThinkObservation' as const, content: [], is_error: false };
    for (const action of openCalls(host.events())) {
      await host.append(callResult(action, observation));
    }
    await answer(host, rejection === null ? 'accepted' : 'rejected');
  }

  override async ask(host: EngineHost, question: string): Promise<string> {
    if (question === 'fail') {
      throw new AgentUnavailableError('the model is away');
    }
    return `${question} (${host.events().length} events)`;
  }

  /** Does not end in a conversation with `say long`. */
  override async condense(host: EngineHost, signal: AbortSignal): Promise<boolean> {
    const [first] = host.events();
    if (first === undefined) {
      return false;
    }
    if (lastMessage(host.events()) === 'say long') {
      await aborted(signal);
    }
    await host.append(condensationEvent('', [first.id], 'a summary', 0));
    return true;
  }

  override async prepare(): Promise<void> {}

  override async switchModel(host: EngineHost, model: string): Promise<void> {
    await host.remember({ model });
  }

  override async close(): Promise<void> {}
}

async function answer(host: EngineHost, text: string): Promise<void> {
  await host.append(messageEvent('', 'agent', text));
  await host.setStatus('finished');
}

async function call(host: EngineHost, thought: string): Promise<void> {
  const action = { kind: 'ThinkAction' as const, thought };
  await host.append(actionEvent(`call-${host.events().length}`, 'response-1', { action }));
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) {
    await once(signal, 'abort');
  }
}

function lastMessage(events: readonly AgentEvent[]): string {
  const message = events.findLast((event) => event.kind === 'MessageEvent' && event.source === 'user');
  const [part] = message?.kind === 'MessageEvent' ? message.llm_message.content : [];
  return part?.type === 'text' ? part.text : '';
}
