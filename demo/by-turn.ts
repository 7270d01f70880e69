import { call, say, type ScriptedAnswer } from '../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { Script } from '../packages/agent-server/test/fakes/scripted-llm.js';

export const shell = (text: string, command: string) => call('terminal', { command }, { text });
export const finish = (message: string) => call('finish', { message });

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
