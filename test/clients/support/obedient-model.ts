import { parseJson } from '@slipway/common/json-access.js';
import {
  call,
  say,
  type ScriptedAnswer,
} from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { ChatMessage, ChatRequest } from '../../../packages/agent-server/test/fakes/scripted-llm.js';

/**
 * A script in place of a model that does what the last message says, one line per answer: `CALL tool {"json": …}` calls a
 * tool, `SAY text` answers, `HANG` never does. Anything else is answered with `done`. It has no state of its own.
 */
export function obedientModel({ messages, tools }: ChatRequest): ScriptedAnswer {
  if (tools.length === 0) {
    return say('A summary.');
  }
  const last = messages.findLastIndex(({ role }) => role === 'user');
  // Some agents join messages that nothing was answered to.
  const lines = textOf(messages[last])
    .replace(/^HANG\n+/, '')
    .split('\n');
  const answered = messages.slice(last).filter(({ role }) => role === 'tool').length;
  const [, verb, rest = ''] = /^(CALL|SAY|HANG) ?(.*)$/.exec(lines[answered] ?? '') ?? [];
  switch (verb) {
    case 'CALL': {
      const [, tool = '', json = '{}'] = /^(\S+) ?(.*)$/.exec(rest) ?? [];
      const args = parseJson(json);
      return call(tool, typeof args === 'object' && args !== null ? { ...args, security_risk: 'LOW' } : json);
    }
    case 'SAY':
      return say(rest);
    case 'HANG':
      return { kind: 'hang' };
    default:
      return say('done');
  }
}

/** Some clients send it in parts. */
export function textOf(message: ChatMessage | undefined): string {
  const content = message?.content ?? '';
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('\n');
}
