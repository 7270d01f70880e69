import {
  call,
  say,
  type ScriptedAnswer,
} from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { ChatRequest } from '../../../packages/agent-server/test/fakes/scripted-llm.js';
import { textOf } from './obedient-model.js';

/** In a message: the model begins to answer and never ends. */
export const HANG = 'take your time';
/** In a message: the provider of the model refuses the key. */
export const REFUSE = 'use the wrong key';
/** What it says then. */
export const REFUSAL = 'Incorrect API key provided';
/** In a message: the agent runs a command that would take minutes. */
export const LONG_COMMAND = 'wait for the train';
/** What the agent says when it has done its work. */
export const DONE = 'The lookup now tries twice, and the check passes.';
/** What the agent answers to any other message. */
export const ANSWER = 'I changed one line of lookup.sh.';

const WORK: readonly ScriptedAnswer[] = [
  call('terminal', { command: 'ls && sh check.sh' }, { text: 'First I look at the failing check.' }),
  call(
    'terminal',
    { command: 'sed -i s/limit=1/limit=2/ lookup.sh; echo "Two tries." > NOTES.md; sh check.sh' },
    { text: 'The limit is off by one.' },
  ),
  call('finish', { message: DONE }),
];

/** A script in place of a model, without a state of its own: conversations of several clients do not disturb each other. */
export function clientsModel({ messages, tools }: ChatRequest): ScriptedAnswer {
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const asked = textOf(messages[last]);
  const results = messages.slice(last).filter(({ role }) => role === 'tool').length;
  if (asked.includes(HANG)) {
    return { kind: 'stall', text: 'Let me think' };
  }
  if (asked.includes(REFUSE)) {
    return { kind: 'status', status: 401, message: REFUSAL };
  }
  if (asked.includes(LONG_COMMAND) && results === 0) {
    return call('terminal', { command: 'sleep 300' }, { text: 'I wait.' });
  }
  const isFirst = messages.filter(({ role }) => role === 'user').length === 1;
  // A request without tools asks for a title.
  if (tools.length === 0) {
    return say('Try the address lookup twice');
  }
  return isFirst ? (WORK[Math.min(results, WORK.length - 1)] ?? say(DONE)) : say(ANSWER);
}
