/** Which span of which trace: what crosses from one program to another (https://www.w3.org/TR/trace-context/). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** Whether the sender records the trace. */
  sampled: boolean;
}

export const TRACEPARENT_HEADER = 'traceparent';

const SAMPLED = 1;
/** Later versions may append fields, which are not read; a longer header is ignored. */
const MAX_LENGTH = 256;
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Null for anything that is no valid `traceparent`: such a request continues no trace. */
export function parseTraceparent(value: unknown): TraceContext | null {
  if (typeof value !== 'string' || value.length > MAX_LENGTH) {
    return null;
  }
  const [, version = '', traceId = '', spanId = '', flags = '', more] = FORM.exec(value) ?? [];
  const isKnown = version !== '' && version !== 'ff' && !(version === '00' && more !== undefined);
  return isKnown && !isZero(traceId) && !isZero(spanId)
    ? { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED }
    : null;
}

function isZero(digits: string): boolean {
  return /^0+$/.test(digits);
}
