import { describe, expect, it } from '@jest/globals';
import { parseTraceparent } from './observability.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('traceparent', () => {
  it.each([
    `00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-00`,
    `00-${TRACE}-${SPAN}-03`,
    `cc-${TRACE}-${SPAN}-01-of-a-later-version`,
  ])('%s is read', (text) => {
    expect(parseTraceparent(text)).toBe(TRACE);
  });

  it.each([
    ['nothing', undefined],
    ['two of them', [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`]],
    ['an empty text', ''],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['capital letters', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['the version that is forbidden', `ff-${TRACE}-${SPAN}-01`],
    ['more than version 00 has', `00-${TRACE}-${SPAN}-01-more`],
    ['an id that is too long', `00-${TRACE}0-${SPAN}-01`],
    ['a text that is too long', `cc-${TRACE}-${SPAN}-01-${'x'.repeat(250)}`],
    ['a line break', `00-${TRACE}-${SPAN}-01\nx`],
  ])('%s is none', (_what, text) => {
    expect(parseTraceparent(text)).toBeNull();
  });
});
