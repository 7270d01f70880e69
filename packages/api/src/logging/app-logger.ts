import { isatty } from 'node:tty';
import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import { trace } from '@opentelemetry/api';
import { withoutTerminalCodes } from '@slipway/common/terminal-text.js';
import { currentRequest } from '../requests/request-context.js';

const LEVELS: Record<AppLoggerOptions['level'], LogLevel[]> = {
  debug: ['fatal', 'error', 'warn', 'log', 'debug'],
  info: ['fatal', 'error', 'warn', 'log'],
  warn: ['fatal', 'error', 'warn'],
  error: ['fatal', 'error'],
};

const SECRET_MEMBERS = [
  'authorization',
  'x-session-api-key',
  'x-access-token',
  'token',
  'key',
  'secret',
  'password',
  'api_key',
  'llm_api_key',
  'search_api_key',
  'sandbox_api_key',
  'env',
  'parameters',
];

const CHATTER = new Set([
  'InstanceLoader',
  'NestApplication',
  'NestFactory',
  'RouterExplorer',
  'RoutesResolver',
]);

/** Nest prints what it then throws, with a stack; who called it reports that in words for operators. */
const REPORTED_BY_CALLER = 'ExceptionHandler';

/** The last lines of this process, oldest first, for operators who ask what happened. */
const recentLines: string[] = [];
const MAX_RECENT_LINES = 200;
const MAX_RECENT_LENGTH = 2000;

export function recentLogLines(): readonly string[] {
  return recentLines;
}

function remember(line: string): string {
  recentLines.push(withoutTerminalCodes(line).trimEnd().slice(0, MAX_RECENT_LENGTH));
  if (recentLines.length > MAX_RECENT_LINES) {
    recentLines.shift();
  }
  return line;
}

/** `HH:MM:SS` */
const TIME_LENGTH = 8;

interface AppLoggerOptions {
  level: 'debug' | 'info' | 'warn' | 'error';
  format: 'json' | 'pretty';
}

/** Nest's logger with our levels and masks, and the ids of request, user, trace and span in every line. */
export class AppLogger extends ConsoleLogger {
  constructor(options: AppLoggerOptions) {
    const json = options.format === 'json';
    super({
      json,
      colors: !json && isatty(1),
      compact: true,
      flattenParams: json,
      logLevels: LEVELS[options.level],
      redact: SECRET_MEMBERS,
    });
  }

  protected override stringifyJsonLogObject({ timestamp, level, ...line }: Record<string, unknown>): string {
    const time = new Date(Number(timestamp)).toISOString();
    const members = { time, level: level === 'log' ? 'info' : level, ...line, ...contextMembers() };
    return remember(super.stringifyJsonLogObject(members));
  }

  /** Begins with the time, without colours: what people look for first. */
  protected override formatMessage(...args: Parameters<ConsoleLogger['formatMessage']>): string {
    const [level, message, , , context, , params] = args;
    const isPlain = level === 'log' || level === 'debug';
    const shown = [
      new Date().toTimeString().slice(0, TIME_LENGTH),
      ...(isPlain ? [] : [this.colorize(level.toUpperCase(), level)]),
      `${context}${this.stringifyMessage(message, level)}`,
      ...(params && Object.keys(params).length > 0 ? [this.stringifyParams(params)] : []),
    ];
    return remember(`${shown.join(' ')}\n`);
  }

  protected override printMessages(...args: Parameters<ConsoleLogger['printMessages']>): void {
    const [messages, context, level, stream, stack, params] = args;
    const isChatter = level === 'log' && CHATTER.has(context ?? '');
    if (context === REPORTED_BY_CALLER || (isChatter && !this.isLevelEnabled('debug'))) {
      return;
    }
    const members = this.options.json === true ? {} : contextMembers();
    const shown =
      params !== undefined || Object.keys(members).length > 0 ? { ...params, ...members } : params;
    super.printMessages(messages, context, level, stream, stack, shown);
  }
}

interface ContextMembers {
  request_id?: string;
  caller_request_id?: string;
  user_id?: string;
  trace_id?: string;
  span_id?: string;
}

function contextMembers(): ContextMembers {
  const [request, span] = [currentRequest(), trace.getActiveSpan()?.spanContext()];
  return {
    ...(request && { request_id: request.requestId }),
    ...(request?.callerRequestId !== undefined && { caller_request_id: request.callerRequestId }),
    ...(request?.userId !== undefined && { user_id: request.userId }),
    ...(span && { trace_id: span.traceId, span_id: span.spanId }),
  };
}
