import { describe, expect, it } from '@jest/globals';
import { processorMs } from '../../../../../test/support/processor-time.js';
import { splitThinking } from './response-parts.js';

describe('splitThinking', () => {
  it.each([
    ['<think>a</think>b', 'b', 'a'],
    ['<think>\na\n</think>\n\nb\n', 'b', 'a'],
    ['\n\n<think>a</think>\nb', 'b', 'a'],
    ['<thinking>a</thinking>b', 'b', 'a'],
    ['<THINK>a</Think>b', 'b', 'a'],
    ['<thought>a</thought>b', 'b', 'a'],
    // The template put the opening tag into the prompt.
    ['a\n</think>\n\nb', 'b', 'a'],
    ['a</think>b', 'b', 'a'],
    ['</think>b', 'b', ''],
    ['see ``` in\n</think>\n```js\nb\n```', '```js\nb\n```', 'see ``` in'],
    // The answer was cut.
    ['<think>a', '', 'a'],
    ['b\n<think>a', 'b', 'a'],
    ['<think></think>b', 'b', ''],
    ['<think>a</think>b\n<think>c</think>\nd', 'b\n\nd', 'a\n\nc'],
    ['<think>a</think>b<think>c</think>d', 'bd', 'a\n\nc'],
    ['<think>write `x</think>b', 'b', 'write `x'],
    ['<think>the tag "</think>" ends it</think>b', 'b', 'the tag "</think>" ends it'],
    ['a</think>b</think>c', 'b</think>c', 'a'],
  ])('%j', (whole, text, reasoning) => {
    expect(splitThinking(whole)).toEqual({ text, reasoning });
  });

  it.each([
    '',
    ' no tags \n',
    'Models write `<think>` and `</think>` around it.',
    'Models write "<think>" and "</think>" around it.',
    'Strip it:\n```js\ntext.replace(/<think>.*<\\/think>/, "");\nconst sample = "<think>a</think>";\n```\n',
    'A <think> that nothing closes in the middle of a line',
    'Use a <thinker> or <think-hard> element.',
  ])('leaves %j alone', (whole) => {
    expect(splitThinking(whole)).toEqual({ text: whole, reasoning: '' });
  });

  it('takes time in proportion to the length', () => {
    const took = processorMs(() => {
      splitThinking('<think>`'.repeat(50_000));
      splitThinking('x <think>'.repeat(50_000));
      splitThinking('`\n'.repeat(100_000));
      splitThinking('`' + '<think>'.repeat(50_000));
    });
    // Measured: 0.1 s; in proportion to the square, a minute.
    expect(took).toBeLessThan(3_000);
  });
});
