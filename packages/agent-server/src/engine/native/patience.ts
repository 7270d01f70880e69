import type { EngineHost } from '../agent-engine.js';
import { conversationFailure } from '../limits.js';

/** Waits; resolves early when the signal aborts. */
export type Wait = (milliseconds: number, signal: AbortSignal) => Promise<void>;

export interface Patience {
  retries: RetrySettings;
  wait: Wait;
  pause: AbortSignal;
  tell: (sentence: string) => Promise<void>;
}

/** How the runs of a conversation wait: as its settings say, told as events, and until the user pauses. */
export function patienceOf(host: EngineHost, wait: Wait): Patience {
  return {
    ...quietPatience(host, wait),
    pause: host.pauseSignal(),
    tell: async (sentence) => {
      await host.append(conversationFailure('LlmRetried', sentence));
    },
  };
}

/** The same beside a run: nothing is logged, and a pause does not concern it. */
export function quietPatience({ settings }: EngineHost, wait: Wait): Patience {
  const { num_retries, retry_multiplier, retry_min_wait, retry_max_wait } = settings.llm.parameters ?? {};
  return {
    retries: {
      retries: num_retries ?? null,
      multiplier: retry_multiplier ?? null,
      minWait: retry_min_wait ?? null,
      maxWait: retry_max_wait ?? null,
    },
    wait,
    pause: new AbortController().signal,
    tell: async () => undefined,
  };
}

/** What a profile says about retries; null: the default below. */
export interface RetrySettings {
  retries: number | null;
  /** Seconds. */
  multiplier: number | null;
  minWait: number | null;
  maxWait: number | null;
}

export const DEFAULT_RETRIES: RetrySettings = {
  retries: null,
  multiplier: null,
  minWait: null,
  maxWait: null,
};

const MIN_RETRIES = 5;
/** Together, pauses outlast the minute for which providers count requests and tokens. */
const MIN_TOTAL_MS = 60_000;
const MULTIPLIER_SECONDS = 2;
const MAX_WAIT_SECONDS = 64;
/** Users prefer an error to a longer wait, and some providers name the end of the day for what passes sooner. */
const MAX_NAMED_MS = 300_000;

interface Attempt {
  retries: number;
  waitedMs: number;
  /** What the provider asks for; 0: it does not say. */
  namedMs: number;
}

/** Milliseconds before the next retry: the time that the provider names, else 2, 4, 8 … s; null: no other retry. */
export function nextPause(
  { retries, waitedMs, namedMs: named }: Attempt,
  { retries: most, multiplier, minWait, maxWait }: RetrySettings,
): number | null {
  if (most !== null && retries >= most) {
    return null;
  }
  const namedMs = named > MAX_NAMED_MS ? 0 : named;
  if (most === null && retries >= MIN_RETRIES) {
    return waitedMs >= MIN_TOTAL_MS ? null : Math.max(namedMs, MIN_TOTAL_MS - waitedMs);
  }
  const growing = (multiplier ?? MULTIPLIER_SECONDS) * 2 ** retries;
  return namedMs || Math.max(minWait ?? 0, Math.min(growing, maxWait ?? MAX_WAIT_SECONDS)) * 1000;
}
