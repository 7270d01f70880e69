import { describe, expect, it } from '@jest/globals';
import { agentServerSpans } from './agent-server.spans.js';

/** A call of 100 ms in a span that began a second earlier. */
const CALL = { earliest: 9_000, startedAt: 10_000, endedAt: 10_100, name: 'POST /api/conversations' };
const spansOf = (entries: unknown) => agentServerSpans(JSON.stringify(entries), CALL);

describe('the spans of an agent server', () => {
  it('are centred in the call, with their children inside', () => {
    const spans = spansOf([
      ['request', -1, 0, 60_000, 0],
      ['create conversation', 0, 10_000, 40_000, 1],
      ['read skills', 1, 15_000, 5_000, 0],
    ]);

    expect(spans).toEqual([
      {
        name: 'POST /api/conversations',
        kind: 'server',
        parent: null,
        startedAt: 10_020,
        endedAt: 10_080,
        failure: null,
      },
      {
        name: 'create conversation',
        kind: 'internal',
        parent: 0,
        startedAt: 10_030,
        endedAt: 10_070,
        failure: 'error',
      },
      {
        name: 'read skills',
        kind: 'internal',
        parent: 1,
        startedAt: 10_035,
        endedAt: 10_040,
        failure: null,
      },
    ]);
  });

  it('may begin before the call, but not before what the call belongs to', () => {
    const [, soon, long] = spansOf([
      ['request', -1, 0, 0, 0],
      ['agent server start', -1, -300_000, 300_000, 0],
      ['agent server start', -1, -3_600_000_000, 3_600_000_000, 0],
    ]);

    expect(soon).toMatchObject({ startedAt: 9_750, endedAt: 10_050 });
    expect(long).toMatchObject({ startedAt: 9_000, endedAt: 10_100 });
  });

  it.each([
    ['longer than the call', [['request', -1, 0, 86_400_000_000, 0]]],
    ['before it arrived', [['request', -1, 86_400_000_000, 1_000, 0]]],
    [
      'after it had ended',
      [
        ['request', -1, 0, 0, 0],
        ['load routes', 0, 86_400_000_000, 86_400_000_000, 0],
      ],
    ],
  ])('are never outside of the call: %s', (_what, entries) => {
    for (const { startedAt, endedAt } of spansOf(entries)) {
      expect(startedAt).toBeGreaterThanOrEqual(CALL.startedAt);
      expect(endedAt).toBeGreaterThanOrEqual(startedAt);
      expect(endedAt).toBeLessThanOrEqual(CALL.endedAt);
    }
  });

  it.each([
    ['no header', undefined],
    ['several headers', ['[]', '[]']],
    ['no JSON', '[["request",-1,0'],
    ['an object', '{"request":1}'],
    ['an empty list', '[]'],
    ['no request first', '[["read skills",-1,0,1,0]]'],
    ['an unknown name', '[["request",-1,0,1,0],["sk-stolen-secret",0,0,1,0]]'],
    ['a name of another type', '[["request",-1,0,1,0],[["read skills"],0,0,1,0]]'],
    ['a parent that comes later', '[["request",-1,0,1,0],["read skills",1,0,1,0]]'],
    ['a parent of the request', '[["request",0,0,1,0]]'],
    ['a fraction', '[["request",-1,0.5,1,0]]'],
    ['a time beyond any request', '[["request",-1,0,1e300,0]]'],
    ['a negative duration', '[["request",-1,0,-1,0]]'],
    ['an entry with more in it', '[["request",-1,0,1,0,"sk-stolen-secret"]]'],
    ['too many entries', JSON.stringify(Array.from({ length: 33 }, () => ['request', -1, 0, 1, 0]))],
    ['a long text', `[["request",-1,0,1,0]${' '.repeat(5_000)}]`],
    ['a deeply nested list', '['.repeat(4_000)],
  ])('are ignored when the header is %s', (_what, header) => {
    expect(agentServerSpans(header, CALL)).toEqual([]);
  });
});
