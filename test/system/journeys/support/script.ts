import {
  type ScriptedAnswer,
  call,
  say,
} from '../../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { ChatMessage, ChatRequest } from '../../../../packages/agent-server/test/fakes/scripted-llm.js';

/** What the model does on a message that says `do NAME`, by the number of tool results since. */
export type Act = (results: string[], request: ChatRequest) => ScriptedAnswer | Promise<ScriptedAnswer>;

const acts = new Map<string, Act>();

/** Has the model act like this in every conversation whose last message of the user has `do NAME` in it. */
export function onMessage(name: string, act: Act): void {
  acts.set(name, act);
}

/** A message that runs one command in the agent's terminal, then ends. */
export function shell(command: string): string {
  return `run ${Buffer.from(command).toString('base64')}`;
}

/** The message that starts with these words. */
export function message(words: string): object {
  return { initial_message: { role: 'user', content: [{ type: 'text', text: words }], run: true } };
}

/**
 * What a message with `work on` asks for: so many thoughts, of which the one after the third waits.
 *
 * @returns lets it go on
 */
export function onLongWork(steps: number): () => void {
  const held = Promise.withResolvers<void>();
  onMessage('work on', async (results) => {
    if (results.length === 3) {
      await held.promise;
    }
    return results.length < steps
      ? call('think', { thought: `Step ${results.length}.` })
      : call('finish', { message: 'Done.' });
  });
  return held.resolve;
}

/** Decides by the last message of the user; without a state of its own, so that conversations do not disturb each other. */
export async function script(request: ChatRequest): Promise<ScriptedAnswer> {
  const { messages } = request;
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const asked = textOf(messages[last]);
  const results = messages
    .slice(last + 1)
    .filter(({ role }) => role === 'tool')
    .map(textOf);
  const command = /\brun ([A-Za-z0-9+/=]+)/.exec(asked)?.[1];
  if (command !== undefined) {
    return results.length === 0
      ? call('terminal', { command: Buffer.from(command, 'base64').toString('utf8') })
      : call('finish', { message: 'It ran.' });
  }
  const name = [...acts.keys()].find((one) => asked.includes(one));
  const act = name === undefined ? undefined : acts.get(name);
  return act ? act(results, request) : say('Well.');
}

function textOf(message: ChatMessage | undefined): string {
  const content = message?.content ?? '';
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('\n');
}
