import {
  type Context,
  context,
  createContextKey,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { errorCode } from './errors/error-message.js';

/** Holds no secrets or texts of users. Attributes: https://opentelemetry.io/docs/specs/semconv/ and `slipway.*`. */
export interface SpanStart extends SpanOptions {
  /** One of few: ids belong into attributes. */
  name: string;
}

const BEGUN_AT = createContextKey('when the active span began');

/** Does nothing while tracing is off. */
export function tracer(): Tracer {
  return trace.getTracer('slipway');
}

/** Measures work as a span, but only inside another one: what the service does every second leaves no traces. */
export async function traced<T>(start: SpanStart, work: (span?: Span) => Promise<T>): Promise<T> {
  return trace.getActiveSpan() === undefined ? work() : measure(start, context.active(), work);
}

/** Begins a trace, or continues that of `traceparent`, which comes with a job or a row. */
export async function tracedFrom<T>(
  traceparent: string | null,
  start: SpanStart,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const sent = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, { traceparent }));
  // Not remote: another replica of ours has decided whether the trace is kept.
  const parent = sent && trace.setSpanContext(ROOT_CONTEXT, { ...sent, isRemote: false });
  return measure(start, parent ?? ROOT_CONTEXT, work);
}

async function measure<T>(
  { name, ...options }: SpanStart,
  parent: Context,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = tracer().startSpan(name, options, parent);
  try {
    return await context.with(trace.setSpan(parent, span).setValue(BEGUN_AT, Date.now()), () => work(span));
  } catch (error) {
    failSpan(span, errorType(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Returns the trace context to store in a job or row, or to send to an agent server; null when no span is active. */
export function currentTraceparent(): string | null {
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent ?? null;
}

/** Epoch milliseconds. */
export function currentSpanBegunAt(): number | null {
  const begunAt = context.active().getValue(BEGUN_AT);
  return typeof begunAt === 'number' ? begunAt : null;
}

/** @param type a code or an error's name, never its message, which may hold what users wrote */
export function failSpan(span: Span, type: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR }).setAttribute('error.type', type);
}

/** The code or the name of an error. */
export function errorType(error: unknown): string {
  const name = error instanceof Error ? error.name : undefined;
  return (
    [errorCode(error), name].find((text) => text !== undefined && /^[\w.-]{1,60}$/.test(text)) ?? 'error'
  );
}
