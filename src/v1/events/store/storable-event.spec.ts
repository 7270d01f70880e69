import { describe, expect, it } from '@jest/globals';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { MAX_EVENT_BYTES, shortenTexts, storableJson, toStub, toStorable } from './storable-event.js';

const NOW = new Date('2026-05-01T00:00:00Z');
const EVENT: AgentEvent = {
  kind: 'PauseEvent',
  id: 'a',
  timestamp: '2026-01-31T12:00:00.123456',
  source: 'user',
};

describe('toStorable', () => {
  it('keeps an event as it is', () => {
    expect(toStorable(EVENT, NOW)).toEqual({
      event: EVENT,
      id: 'a',
      kind: 'PauseEvent',
      occurredAt: '2026-01-31T12:00:00.123456Z',
      body: JSON.stringify(EVENT),
    });
  });

  it('falls back to the current time when the timestamp is no valid time', () => {
    expect(toStorable({ ...EVENT, timestamp: '+200000-01-01T00:00:00Z' }, NOW).occurredAt).toBe(
      NOW.toISOString(),
    );
  });

  it('keeps a stub of every event', () => {
    const odd = { ...EVENT, id: 'a\0', more: { much: true } };

    expect(JSON.parse(toStub(odd, NOW).body)).toEqual({ ...EVENT, id: 'a\u{FFFD}' });
  });

  it('cuts the texts of an event that is too large', () => {
    const { body } = toStorable({ ...EVENT, text: 'x'.repeat(6_000_000), small: 'kept' } as AgentEvent, NOW);

    expect(JSON.parse(body)).toEqual({
      ...EVENT,
      small: 'kept',
      text: expect.stringMatching(/^x{1048576} \[4951424 characters left out\]$/),
    });
  });

  it('keeps to the limit when there are too many members', () => {
    const wide = { ...EVENT, many: Array.from({ length: 1_000_000 }, () => 'abc') };

    expect(toStorable(wide, NOW).body.length).toBeLessThan(MAX_EVENT_BYTES);
    expect(JSON.parse(toStorable(wide, NOW).body)).toEqual(EVENT);
  });
});

describe('storableJson', () => {
  it.each([
    ['nothing wrong', { a: ['b', 1, null, true] }, { a: ['b', 1, null, true] }],
    ['NUL', { a: 'x\0y' }, { a: 'x\u{FFFD}y' }],
    ['a lone surrogate', ['\uD800', '\uDC00x'], ['\u{FFFD}', '\u{FFFD}x']],
    ['a pair of them', ['\u{1F600}\0'], ['\u{1F600}\u{FFFD}']],
    ['a key', { 'a\0': { 'b\0': 1 } }, { 'a\u{FFFD}': { 'b\u{FFFD}': 1 } }],
    ['what only looks like it', { a: String.raw`\u0000` }, { a: String.raw`\u0000` }],
  ])('replaces %s', (_name, value, expected) => {
    expect(storableJson<unknown>(value)).toEqual(expected);
  });

  it('returns a value that needs no change as it is', () => {
    const value = { a: 'b' };

    expect(storableJson(value)).toBe(value);
  });
});

describe('shortenTexts', () => {
  it('returns what is small enough', () => {
    const value = { a: 'b' };

    expect(shortenTexts(value, 9)).toBe(value);
  });

  it('cuts the longest texts first, and never inside a character', () => {
    const value = { long: '\u{1F600}'.repeat(2_000_000), short: 'kept', list: ['y'.repeat(2_000)] };
    const { long, short, list } = shortenTexts(value, 200_000);

    expect(long).toMatch(/^\u{1F600}+ \[\d+ characters left out\]$/u);
    expect(short).toBe('kept');
    expect(list).toEqual(value.list);
  });
});
