import { describe, expect, it } from '@jest/globals';
import { toHookEvents } from './conversation-workspace.service.js';

const HOOK = { type: 'command', command: 'check.sh', timeout: 60, async: false };

describe('toHookEvents', () => {
  it.each([
    ['nothing', null, []],
    ['a text', 'x', []],
    [
      'the published form',
      { stop: [{ matcher: '*', hooks: [HOOK] }] },
      [{ event_type: 'stop', matchers: [{ matcher: '*', hooks: [HOOK] }] }],
    ],
    [
      'the form of others, completed',
      { hooks: { PreToolUse: [{ matcher: 'terminal', hooks: [{ command: 'check.sh' }] }] } },
      [{ event_type: 'pre_tool_use', matchers: [{ matcher: 'terminal', hooks: [HOOK] }] }],
    ],
    [
      'what is no hook',
      { stop: ['x', { hooks: [5, { prompt: 'x' }] }] },
      [
        {
          event_type: 'stop',
          matchers: [
            { matcher: '*', hooks: [] },
            { matcher: '*', hooks: [] },
          ],
        },
      ],
    ],
  ])('reads %s', (_name, config, expected) => {
    expect(toHookEvents(config)).toEqual(expected);
  });
});
