import { describe, expect, it } from '@jest/globals';
import { mentions } from './mentions.js';

describe('a mention', () => {
  it.each([
    ['alone', '@slipway'],
    ['in any case', 'Hello @SlipWay, please'],
    ['at the beginning of a later line', 'One\n@slipway two'],
    ['in brackets', '(@slipway) and [@slipway](https://a.example)'],
    ['with a full stop', 'Ask @slipway.'],
    ['with a colon', '@slipway: fix it'],
    ['in bold', '**@slipway** fix it'],
    ['between code spans', '`one` @slipway `two`'],
    ['beside a lonely backtick', 'It`s @slipway'],
    ['beside runs of backticks that do not match', '`` @slipway `'],
    ['below a quote', '> What now?\n\n@slipway fix it'],
    ['right below a quoted line', '> What now?\n@slipway fix it'],
    ['right below one, as forms send lines', '> What now?\r\n> And then?\r\n@slipway fix it'],
    ['behind many lines of a quote', `${'> a\n'.repeat(7_000)}@slipway`],
    ['below a fence', '```\ncode\n```\n@slipway fix it'],
    ['below a fence with more marks at its end', '~~~ts\ncode\n~~~~\n@slipway fix it'],
    ['in an item of a list', '- one\n- @slipway two'],
    ['indented within a paragraph', 'One\n    @slipway two'],
    ['before an address', '@slipway see https://a.example'],
  ])('is found %s', (_how, text) => {
    expect(mentions(text, 'slipway')).toBe(true);
  });

  it.each([
    ['a longer name', '@slipway2 @slipway_x @slipway-bot @slipwayé'],
    ['a name with a domain', '@slipway.example'],
    ['a mail address', 'team@slipway and a.b@slipway.'],
    ['a web address', 'https://a.example/@slipway and (http://@slipway)'],
    ['a path', 'packages/@slipway and a=@slipway'],
    ['a quoted line', '> @slipway fix it'],
    ['a quoted line in a list', '- > @slipway fix it'],
    ['a quote in a quote', '>> @slipway'],
    ['HTML in a quote', '> <div>\n> @slipway\n> </div>'],
    ['a comment', '<!-- @slipway --> a <!-- @slipway -->'],
    ['what is no more read', `${'a '.repeat(16_000)}@slipway`],
    ['a code span', 'Write `@slipway fix it`.'],
    ['a code span over two lines', 'Write `a\n@slipway` there.'],
    ['a code span with backticks in it', '`` ` @slipway ``'],
    ['a fenced block', '```\n@slipway fix it\n```'],
    ['a fenced block in a list', '- ```\n  @slipway\n  ```'],
    ['a fenced block in a quote', '> ```\n> @slipway\n> ```'],
    ['a fence without an end', '~~~\n\n@slipway'],
    ['a fence that another mark does not end', '```\n~~~\n@slipway\n```'],
    ['an indented block', 'So:\n\n    @slipway fix it'],
    ['an indented block of several lines', '\t@slipway one\n\n\t@slipway two'],
    ['another name', '@other'],
    ['the name alone', 'slipway'],
    ['nothing', ''],
  ])('is not found in %s', (_what, text) => {
    expect(mentions(text, 'slipway')).toBe(false);
  });

  it.each([
    ['@slipway stop', true],
    ['Please, @Slipway:  STOP!', true],
    ['@slipway\nstop', true],
    ['@slipway stopping', false],
    ['@slipway do not stop', false],
    ['> @slipway stop', false],
    ['Say `@slipway stop`.', false],
  ])('with an order: %s', (text, isOrder) => {
    expect(mentions(text, 'slipway', 'stop')).toBe(isOrder);
  });

  it('takes a name as it is', () => {
    expect(mentions('@a.b', 'a.b')).toBe(true);
    expect(mentions('@axb', 'a.b')).toBe(false);
    expect(mentions('@', '')).toBe(false);
  });
});
