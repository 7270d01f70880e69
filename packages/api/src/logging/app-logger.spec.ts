import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { runInRequestContext } from '../requests/request-context.js';
import { recordSpans } from '../../../../test/support/recorded-spans.js';
import { unregisterTracing } from '@slipway/telemetry/otlp-export.js';
import { tracedFrom } from '@slipway/common/spans.js';
import { AppLogger } from './app-logger.js';

describe('AppLogger', () => {
  let lines: string[];

  beforeEach(() => {
    lines = [];
    const capture = (chunk: unknown): boolean => {
      lines.push(String(chunk));
      return true;
    };
    jest.spyOn(process.stdout, 'write').mockImplementation(capture);
    jest.spyOn(process.stderr, 'write').mockImplementation(capture);
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  const parsed = (): Record<string, unknown>[] =>
    lines.map((line) => JSON.parse(line) as Record<string, unknown>);

  it('writes one JSON line with the data, the request and the user', () => {
    runInRequestContext({ requestId: 'req-1', callerRequestId: 'theirs', userId: 'user-1' }, () => {
      new AppLogger({ level: 'info', format: 'json' }).warn(
        'git provider failed',
        { provider: 'github' },
        'Tasks',
      );
    });

    expect(parsed()).toEqual([
      {
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
        level: 'warn',
        pid: process.pid,
        message: 'git provider failed',
        context: 'Tasks',
        provider: 'github',
        request_id: 'req-1',
        caller_request_id: 'theirs',
        user_id: 'user-1',
      },
    ]);
  });

  it('leaves to the caller what Nest prints and then throws', () => {
    const logger = new AppLogger({ level: 'debug', format: 'json' });
    logger.error(new Error('SANDBOX_EGRESS: its rules are wrong'), undefined, 'ExceptionHandler');
    logger.error('a second error', undefined, 'Tasks');

    expect(parsed()).toEqual([expect.objectContaining({ message: 'a second error' })]);
  });

  it('begins a line for people with the time, then says what happened', () => {
    const logger = new AppLogger({ level: 'info', format: 'pretty' });
    logger.log('listening', { port: 3000 }, 'Service');
    logger.warn('sandbox lost', 'Sandboxes');
    runInRequestContext({ requestId: 'req-2' }, () => logger.log('request', { path: '/alive' }, 'Request'));

    expect(lines).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d \[Service\] listening \{ port: 3000 \}\n$/),
      expect.stringMatching(/^\d\d:\d\d:\d\d WARN \[Sandboxes\] sandbox lost\n$/),
      expect.stringMatching(/request.*path.*\/alive.*request_id.*req-2/s),
    ]);
  });

  it('names the trace and the span that a line belongs to', async () => {
    const ended = recordSpans();
    try {
      const logger = new AppLogger({ level: 'info', format: 'json' });
      await tracedFrom(null, { name: 'work' }, async () => logger.log('inside'));
      logger.log('outside');
    } finally {
      unregisterTracing();
    }

    const span = ended[0]?.spanContext();
    const ids = { trace_id: span?.traceId, span_id: span?.spanId };
    expect(parsed()).toEqual([
      expect.objectContaining({ message: 'inside', ...ids }),
      expect.not.objectContaining(ids),
    ]);
  });

  it('masks secrets wherever they are', () => {
    new AppLogger({ level: 'info', format: 'json' }).log('stored', {
      token: 'ghp_secret',
      nested: { llm_api_key: 'sk-secret', headers: { Authorization: 'Bearer secret' } },
      list: [{ password: 'secret' }],
    });

    expect(lines.join('')).not.toContain('secret');
    expect(lines.join('')).toContain('REDACTED');
  });

  it.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
  ] as const)('at level %s writes %j', (level, expected) => {
    const logger = new AppLogger({ level, format: 'json' });
    logger.debug('d');
    logger.log('l');
    logger.warn('w');
    logger.error('e');

    expect(parsed().map((line) => line['level'])).toEqual(expected);
  });

  it('keeps the framework start-up chatter for debugging', () => {
    new AppLogger({ level: 'info', format: 'json' }).log('Mapped {/alive, GET} route', 'RouterExplorer');
    expect(lines).toHaveLength(0);

    new AppLogger({ level: 'debug', format: 'json' }).log('Mapped {/alive, GET} route', 'RouterExplorer');
    expect(lines).toHaveLength(1);
  });
});
