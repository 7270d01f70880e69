import { AGENT_SPAN_NAMES, type AgentSpanName, MAX_AGENT_SPANS } from '@slipway/agent-protocol/server.js';
import { context, ROOT_CONTEXT, type Span, SpanKind, trace } from '@opentelemetry/api';
import { parseJson } from '@slipway/common/json-access.js';
import { failSpan } from '@slipway/common/spans.js';

/** Longer than any honest list. */
const MAX_LENGTH = 4096;
/** Offsets and durations, microseconds. */
const MAX_US = 24 * 3600 * 1e6;

interface MeasuredSpan {
  name: string;
  kind: 'server' | 'internal';
  parent: number | null;
  /** Epoch milliseconds. */
  startedAt: number;
  endedAt: number;
  /** From a small set of words; null when the work succeeded. */
  failure: string | null;
}

interface MeasuredCall {
  /** Start of the sandbox: no span may begin earlier. */
  earliest: number;
  startedAt: number;
  endedAt: number;
  name: string;
}

interface Entry {
  name: AgentSpanName;
  parent: number;
  startMs: number;
  durationMs: number;
  failed: boolean;
}

/** Reads an untrusted list: known names, no free text, bounded, within the measured time. Empty if invalid. */
export function agentServerSpans(header: unknown, call: MeasuredCall): MeasuredSpan[] {
  const entries = parseEntries(header);
  const [request] = entries;
  if (request === undefined) {
    return [];
  }
  const { startedAt, endedAt, earliest } = call;
  const durationMs = Math.min(request.durationMs, endedAt - startedAt);
  // The time that the agent server does not account for is split equally between the way there and the way back.
  const arrivedAt = startedAt + (endedAt - startedAt - durationMs) / 2;
  const within = (time: number, from: number): number => Math.min(Math.max(time, from), endedAt);
  return entries.map(({ name, parent, startMs, durationMs: ownMs, failed }, index) => {
    const isOwn = index === 0;
    const from = startMs < 0 ? earliest : arrivedAt;
    const begin = within(arrivedAt + (isOwn ? 0 : startMs), from);
    return {
      name: isOwn ? call.name : name,
      kind: isOwn ? 'server' : 'internal',
      parent: parent < 0 ? null : parent,
      startedAt: begin,
      endedAt: within(begin + (isOwn ? durationMs : ownMs), begin),
      failure: failed ? 'error' : null,
    };
  });
}

/** Adds spans of the agent server to the trace of the call, under a service name of their own. */
export function recordAgentServerSpans(measured: readonly MeasuredSpan[]): void {
  const tracer = trace.getTracer('slipway-agent-server');
  const spans: Span[] = [];
  for (const { name, kind, parent, startedAt, failure } of measured) {
    const above = parent === null ? undefined : spans[parent];
    const options = { kind: kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL, startTime: startedAt };
    const span = tracer.startSpan(
      name,
      options,
      above === undefined ? context.active() : trace.setSpan(ROOT_CONTEXT, above),
    );
    if (failure !== null) {
      failSpan(span, failure);
    }
    spans.push(span);
  }
  spans.forEach((span, index) => span.end(measured[index]?.endedAt));
}

function parseEntries(header: unknown): Entry[] {
  const list = typeof header === 'string' && header.length <= MAX_LENGTH ? parseJson(header) : undefined;
  if (!Array.isArray(list) || list.length > MAX_AGENT_SPANS) {
    return [];
  }
  const entries = list.map(parseEntry);
  return entries.every((entry) => entry !== null) && entries[0]?.name === 'request' ? entries : [];
}

function parseEntry(value: unknown, index: number): Entry | null {
  if (!Array.isArray(value) || value.length !== 5) {
    return null;
  }
  const [given, parent, startUs, durationUs, failed]: unknown[] = value;
  const name = AGENT_SPAN_NAMES.find((known) => known === given);
  const isValid =
    isWholeNumber(parent, -1, index - 1) &&
    isWholeNumber(startUs, -MAX_US, MAX_US) &&
    isWholeNumber(durationUs, 0, MAX_US) &&
    isWholeNumber(failed, 0, 1);
  return name !== undefined && isValid
    ? { name, parent, startMs: startUs / 1000, durationMs: durationUs / 1000, failed: failed === 1 }
    : null;
}

function isWholeNumber(value: unknown, minimum: number, maximum: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= minimum && value <= maximum;
}
