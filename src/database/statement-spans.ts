import { SpanKind, trace } from '@opentelemetry/api';
import { type AfterQueryEvent, type EntitySubscriberInterface, EventSubscriber } from 'typeorm';
import { errorType, failSpan, type SpanStart, tracer } from '../common/spans.js';

const MAX_SEARCHED = 8_000;
const OPERATION = /^\s*([a-z]+)/i;
const TABLE = /\b(?:FROM|INTO|UPDATE)\s+(?:ONLY\s+)?"?([a-z_][a-z0-9_]*)"?/i;

/** Adds the statements of TypeORM to traces; named statements add themselves. */
@EventSubscriber()
export class StatementSpans implements EntitySubscriberInterface {
  afterQuery({ query, success, executionTime, error }: AfterQueryEvent): void {
    if (trace.getActiveSpan() === undefined) {
      return;
    }
    const { name, ...options } = statementSpan(statementName(query));
    const endedAt = Date.now();
    const span = tracer().startSpan(name, { ...options, startTime: endedAt - (executionTime ?? 0) });
    if (!success) {
      failSpan(span, errorType(error));
    }
    span.end(endedAt);
  }
}

/** The name in a trace, such as `SELECT sandboxes`, without the statement's text. */
export function statementName(query: string): string {
  const operation = OPERATION.exec(query)?.[1]?.toUpperCase() ?? 'statement';
  const table = TABLE.exec(query.slice(0, MAX_SEARCHED))?.[1];
  return table === undefined ? operation : `${operation} ${table}`;
}

export function statementSpan(name: string): SpanStart {
  return {
    name,
    kind: SpanKind.CLIENT,
    attributes: { 'db.system.name': 'postgresql', 'db.query.summary': name },
  };
}
