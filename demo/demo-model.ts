import { call, say, type ScriptedAnswer } from '../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { Script } from '../packages/agent-server/test/fakes/scripted-llm.js';

const COMMIT =
  'git commit --quiet --all --message "fix: try the address lookup twice" && git log --oneline -1';

/** The script's answers to the first message: one step for each tool result since the user's last message. */
const FIRST_TURN: ScriptedAnswer[] = [
  call('terminal', { command: 'ls && sh check.sh' }, { text: 'First I look at the failing check.' }),
  call(
    'terminal',
    { command: 'sed -i s/limit=1/limit=2/ lookup.sh && sh check.sh' },
    { text: 'The limit is off by one.' },
  ),
  call('terminal', { command: COMMIT }, { text: 'The check passes, so I commit.' }),
  call('finish', { message: 'The lookup was tried once only; now it is tried twice, and the check passes.' }),
];
const NEXT_TURN: ScriptedAnswer[] = [
  call(
    'terminal',
    { command: 'git show --stat --format=%an%n%s HEAD' },
    { text: 'I look at the commit once more.' },
  ),
  say('I changed one line of lookup.sh, and committed it under your name.'),
];

/**
 * A script in place of a model. It shows that everything around a model works, and nothing about models.
 *
 * @param turns the answers to each message of the user, the last ones also to all further messages
 */
export function byTurn(...turns: ScriptedAnswer[][]): Script {
  return ({ messages }) => {
    const lastUser = messages.findLastIndex(({ role }) => role === 'user');
    const steps = messages.slice(lastUser).filter(({ role }) => role === 'tool').length;
    const turn = messages.filter(({ role }) => role === 'user').length;
    const script = turns[Math.min(turn, turns.length) - 1] ?? [];
    return script[Math.min(steps, script.length - 1)] ?? say('Done.');
  };
}

export const demoModel = byTurn(FIRST_TURN, NEXT_TURN);
