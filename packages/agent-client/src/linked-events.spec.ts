import { describe, expect, it } from '@jest/globals';
import { linkedFrame } from '@slipway/agent-protocol/server.js';
import { isLinkedFrame, type LinkedEvent, LinkedEvents, parseLinkedFrame } from './agent-server.watch.js';

function eventText(id: string, more = ''): string {
  return `{"id":"${id}","kind":"PauseEvent","source":"user","timestamp":"2026-11-23T12:00:00.000000"${more}}`;
}

function parse(frame: string): LinkedEvent | null {
  return parseLinkedFrame(Buffer.from(frame));
}

/** An event for each letter; the first one comes after `after`. */
function linked(letters: string, after: string | null = null): LinkedEvent[] {
  return letters.split('').map((letter, index) => {
    const parsed = parse(linkedFrame(letters[index - 1] ?? after, eventText(letter)));
    if (parsed === null) {
      throw new Error('failed to parse a linked frame');
    }
    return parsed;
  });
}

describe('linked frames', () => {
  it.each([null, 'a', 'quoted " and \\'])('are read as they were written, after %s', (after) => {
    const frame = linkedFrame(after, eventText('b'));

    expect(isLinkedFrame(Buffer.from(frame))).toBe(true);
    expect(parse(frame)).toEqual({
      after,
      event: JSON.parse(eventText('b')),
      bytes: Buffer.byteLength(frame),
    });
  });

  it.each([
    ['an event as it is', eventText('b')],
    ['the full state', '{"kind":"ConversationStateUpdateEvent","key":"full_state"}'],
    ['nothing', ''],
  ])('are not %s', (_what, frame) => {
    expect(isLinkedFrame(Buffer.from(frame))).toBe(false);
  });

  it.each([
    ['no JSON', '{"after":'],
    ['no event', linkedFrame('a', 'null')],
    ['an event without a time', linkedFrame('a', '{"id":"b","kind":"PauseEvent"}')],
    ['a link that is no id', `{"after":7,"event":${eventText('b')}}`],
    ['no link', `{"event":${eventText('b')}}`],
    ['too many bytes', linkedFrame('a', eventText('b', `,"text":"${'x'.repeat(65_536)}"`))],
    ['too many values', linkedFrame('a', eventText('b', `,"list":[${'0,'.repeat(10_000)}0]`))],
    ['values too deep', linkedFrame('a', eventText('b', `,"deep":${'['.repeat(200)}${']'.repeat(200)}`))],
  ])('are refused with %s', (_what, frame) => {
    expect(parse(frame)).toBeNull();
  });
});

describe('events that have arrived', () => {
  it.each([
    ['nothing is stored', 'abc', null, null, 'abc'],
    ['they go on after the last one', 'bcd', 'a', 'a', 'bcd'],
    ['some of them are stored', 'bcd', 'a', 'c', 'd'],
    ['all of them are stored', 'bcd', 'a', 'd', ''],
    ['some before them are not stored', 'cd', 'b', 'a', null],
    ['they begin the log, of which something else is stored', 'ab', null, 'x', null],
  ])('are taken when %s', (_when, letters, after, lastId, expected) => {
    const events = new LinkedEvents();
    linked(letters, after).forEach((event) => events.add(event));

    expect(
      events
        .takeAfter(lastId)
        ?.map(({ id }) => id)
        .join('') ?? null,
    ).toBe(expected);
    expect(events.isEmpty).toBe(true);
  });

  it('keep only what comes after the last gap', () => {
    const events = new LinkedEvents();
    [...linked('ab'), ...linked('ef', 'd')].forEach((event) => events.add(event));

    expect(events.takeAfter('d')?.map(({ id }) => id)).toEqual(['e', 'f']);
  });

  it('are bounded in number and in bytes', () => {
    const events = new LinkedEvents();
    const [first] = linked('a');
    const added = Array.from({ length: 201 }, () =>
      events.add({ after: 'a', bytes: 1, event: { ...first?.event, id: 'a' } as LinkedEvent['event'] }),
    );
    expect(added.indexOf(false)).toBe(200);
    expect(events.isEmpty).toBe(true);

    expect(linked('b', 'a').map((event) => events.add({ ...event, bytes: 256 * 1024 }))).toEqual([true]);
    expect(linked('c', 'b').map((event) => events.add(event))).toEqual([false]);
  });
});
