import { AsyncLocalStorage } from 'node:async_hooks';
import { errorCode } from '@slipway/common/errors/error-message.js';
import type { TraceContext } from '@slipway/common/tracing/trace-context.js';

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';

/**
 * Names are those of OpenTelemetry's semantic conventions (https://opentelemetry.io/docs/specs/semconv/) and
 * `slipway.*`. Values hold no secret and no text of users: no query, header, body or parameter of a statement.
 */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  /** One of few: ids belong into attributes. */
  name: string;
  /** `internal` unless said. */
  kind?: SpanKind;
  attributes?: SpanAttributes;
}

/** A piece of work that is being measured. */
export interface Span {
  readonly context: TraceContext;
  /** For whoever continues the trace: a job, an agent server. */
  readonly traceparent: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** @param type one of few: a code or the name of an error, never its message */
  fail(type: string): void;
  end(): void;
}

/** A piece of work that was measured elsewhere, or before anybody knew that it was one. */
export interface MeasuredSpan extends SpanStart {
  /** Index of an earlier one of the same list; null: the span that they are recorded under. */
  parent: number | null;
  /** Epoch milliseconds. */
  startedAt: number;
  endedAt: number;
  /** As `fail` takes it; null: it succeeded. */
  failure: string | null;
}

/** Whose work a span is. */
export type SpanProgram = 'service' | 'agent-server';

/** Port to what keeps spans. There is one per process, and none while tracing is off. */
export abstract class Tracer {
  /** @param parent `traceparent` of a span of another replica or of a job, or what `adopt` returned; null: begins a trace */
  abstract start(span: SpanStart, parent: Span | string | null): Span;

  /** The `traceparent` for work that a caller asked for: their trace and span, and our own decision whether it is kept. */
  abstract adopt(caller: TraceContext): string;

  abstract record(spans: readonly MeasuredSpan[], parent: Span, program: SpanProgram): void;
}

/** Describes a span; not called while tracing is off. */
type Describe = () => SpanStart;

const currentSpans = new AsyncLocalStorage<Span>();
let tracer: Tracer | null = null;

/** Switches tracing on for this process, or off. */
export function setTracer(next: Tracer | null): void {
  tracer = next;
}

/** Null while tracing is off. */
export function currentTracer(): Tracer | null {
  return tracer;
}

/** The span that the caller's work belongs to; null outside of one, and while tracing is off. */
export function currentSpan(): Span | null {
  return tracer === null ? null : (currentSpans.getStore() ?? null);
}

export function currentTraceparent(): string | null {
  return currentSpan()?.traceparent ?? null;
}

/** Does work that belongs to a span; whoever calls this ends the span. */
export function runInSpan<T>(span: Span, work: () => T): T {
  return currentSpans.run(span, work);
}

/** Does work that belongs to no span, whoever asked for it. */
export function runOutsideSpans<T>(work: () => T): T {
  return currentSpans.exit(work);
}

/**
 * Does a part of what is being measured as a span of its own. Work that belongs to no span is not measured, so that what
 * the service does by itself every second leaves no traces.
 */
export async function traced<T>(describe: Describe, work: (span: Span | null) => Promise<T>): Promise<T> {
  const parent = currentSpan();
  return tracer === null || parent === null ? work(null) : measure(tracer.start(describe(), parent), work);
}

/**
 * Does work that begins a trace, or continues one.
 *
 * @param traceparent of what caused the work; null: nothing that is known
 */
export async function tracedFrom<T>(
  traceparent: string | null,
  describe: Describe,
  work: (span: Span | null) => Promise<T>,
): Promise<T> {
  return tracer === null ? work(null) : measure(tracer.start(describe(), traceparent), work);
}

async function measure<T>(span: Span, work: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await currentSpans.run(span, () => work(span));
  } catch (error) {
    span.fail(errorType(error));
    throw error;
  } finally {
    span.end();
  }
}

/** What a span keeps of an error: its code or its name. Messages may hold what users wrote. */
export function errorType(error: unknown): string {
  const name = error instanceof Error ? error.name : undefined;
  return (
    [errorCode(error), name].find((text) => text !== undefined && /^[\w.-]{1,60}$/.test(text)) ?? 'error'
  );
}
