import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SecretMasker } from '../secret-masker.js';
import { DraftAnswer } from './draft-answer.js';

const masker = new SecretMasker(['sesame-sesa', 'open-<sesame>', 'a\\b"c-d-e-f']);
const WHOLE = [
  'Take sesame-sesame-sesa, as the user says: open-<sesame>.',
  'In JSON: "a\\\\b\\"c-d-e-f"; in base64: b3Blbi08c2VzYW1lPg==.',
  '- [ ] 1 < 2 😀',
  '[...] and List<String>',
].join('\n');

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

function unmasked(text: string): { length: number; masked: string } {
  return { length: text.length, masked: text };
}

/** What is told of a text that comes in such pieces. */
function tell(pieces: readonly string[]): string[] {
  const draft = new DraftAnswer(
    (text) => masker.begun(text),
    () => 7,
  );
  const told: string[] = [];
  draft.listen(() => told.push(draft.told?.text ?? ''));
  let text = '';
  for (const piece of pieces) {
    text += piece;
    draft.write(() => ({ text, reasoning: '' }));
    jest.advanceTimersByTime(50);
  }
  expect(draft.told).toMatchObject({ anchor: 7, attempt: 1 });
  return told;
}

describe('DraftAnswer', () => {
  it('tells the beginning of the masked text, whatever the pieces', () => {
    const masked = masker.text(WHOLE);
    expect(masked).not.toMatch(/sesame-sesa|open|c-d-e|b3Bl/);
    for (let cut = 1; cut < WHOLE.length; cut += 1) {
      const told = tell([WHOLE.slice(0, cut), WHOLE.slice(cut), '.']);
      expect(told.filter((text) => !`${masked}.`.startsWith(text))).toEqual([]);
      expect(told.at(-1)).toBe(`${masked}.`);
    }
    const told = tell([...WHOLE.split(''), '.']);
    expect(told.filter((text) => !`${masked}.`.startsWith(text))).toEqual([]);
    expect(told.length).toBeGreaterThan(50);
  });

  it('tells no fragment of a secret that a note of left out text follows', () => {
    const told = tell('It is open-<se\n[... 300 characters left out ...]\nsame> and more.'.split(''));
    expect(told.at(-1)).toBe('It is ');
  });

  it('tells no half characters', () => {
    expect(tell(['x\ud83d', '\ude00'])).toEqual(['x', 'x😀']);
  });

  it('tells together what comes within a moment, and nothing while nobody listens', () => {
    const mask = jest.fn(unmasked);
    const draft = new DraftAnswer(mask, () => 0);
    draft.write(() => ({ text: 'Hello', reasoning: '' }));
    jest.advanceTimersByTime(1_000);
    expect(mask).not.toHaveBeenCalled();
    const listener = jest.fn();
    const end = draft.listen(listener);
    'Hello, world'.split('').forEach((_, index, all) => {
      draft.write(() => ({ text: all.slice(0, index + 1).join(''), reasoning: '' }));
    });
    jest.advanceTimersByTime(50);
    expect(listener).toHaveBeenCalledTimes(1);
    expect(draft.told?.text).toBe('Hello, world');
    end();
    draft.write(() => ({ text: 'Hello, world!', reasoning: '' }));
    jest.advanceTimersByTime(1_000);
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it('counts another attempt when what was told turns out to be thoughts', () => {
    const draft = new DraftAnswer(unmasked, () => 0);
    draft.listen(() => undefined);
    draft.write(() => ({ text: 'I should add', reasoning: '' }));
    jest.advanceTimersByTime(50);
    const { id } = draft.told ?? {};
    draft.write(() => ({ text: 'It is 4.', reasoning: 'I should add' }));
    jest.advanceTimersByTime(50);
    expect(draft.told).toMatchObject({ id, attempt: 2, text: 'It is 4.', reasoning: 'I should add' });
  });

  it('gives its id to one event, and takes another one then', () => {
    const draft = new DraftAnswer(unmasked, () => 0);
    draft.listen(() => undefined);
    expect(draft.end()).toBeUndefined();
    draft.write(() => ({ text: 'One', reasoning: '' }));
    jest.advanceTimersByTime(50);
    const { id } = draft.told ?? {};
    expect([draft.end(), draft.end()]).toEqual([id, undefined]);
    draft.write(() => ({ text: 'Two', reasoning: '' }));
    jest.advanceTimersByTime(50);
    expect(draft.told).toMatchObject({ attempt: 1, text: 'Two' });
    expect(draft.told?.id).not.toBe(id);
    draft.write(null);
    expect([draft.told, draft.end()]).toEqual([null, undefined]);
  });
});
