import { type AnthropicAnswer, ScriptedAnthropic } from '../fakes/scripted-anthropic.js';
import { call, type ScriptedAnswer, say } from '../fakes/scripted-llm.answers.js';
import { ScriptedLlm } from '../fakes/scripted-llm.js';

/** A model behind some vendor's API. */
export interface ModelForAgents {
  url: string;
  /** How many requests it has left without an answer. */
  hanging: () => number;
  close: () => Promise<void>;
}

/** What a user's message in double brackets asks of the model. */
type Order = { kind: 'say'; text: string } | { kind: 'run'; command: string } | { kind: 'hang' };

/** The tools that run a command, as agents name them. */
const SHELLS = ['Bash', 'run_shell_command', 'bash', 'shell'];

/**
 * The last order in a history: `[[say:words]]`, `[[run:command]]`, `[[hang:]]`, or `[[recall:]]`, which repeats the words of
 * all earlier ones. A command whose result is there has been run.
 */
function orderOf(history: string, resultMark: string): Order {
  const orders = [...history.matchAll(/\[\[(say|run|hang|recall):([^\]]*)\]\]/g)];
  const last = orders.at(-1);
  const [, kind = 'say', words = ''] = last ?? [];
  switch (kind) {
    case 'run':
      return history.lastIndexOf(resultMark) > (last?.index ?? 0)
        ? { kind: 'say', text: `ran ${words}` }
        : { kind: 'run', command: words };
    case 'hang':
      return { kind: 'hang' };
    case 'recall': {
      const said = orders.filter(([, what]) => what === 'say').map(([, , text]) => text);
      return { kind: 'say', text: `recalled ${said.join(' ')}` };
    }
    default:
      return { kind: 'say', text: words || 'nothing' };
  }
}

export async function startOpenAiModel(): Promise<ModelForAgents> {
  let hanging = 0;
  const llm = await ScriptedLlm.start(({ messages, tools }): ScriptedAnswer => {
    const order = orderOf(JSON.stringify(messages), '"role":"tool"');
    const shell = tools.find((name) => SHELLS.includes(name));
    if (order.kind === 'hang' && tools.length > 0) {
      hanging += 1;
      return { kind: 'hang' };
    }
    return order.kind === 'run' && shell !== undefined
      ? call(shell, { command: order.command, description: 'Runs it', is_background: false })
      : say(order.kind === 'say' ? order.text : 'a title');
  });
  return { url: llm.url, hanging: () => hanging, close: async () => await llm.close() };
}

export async function startAnthropicModel(): Promise<ModelForAgents> {
  let calls = 0;
  let hanging = 0;
  const usage = { input: 1_000, output: 50 };
  const llm = await ScriptedAnthropic.start(({ messages, tools }): AnthropicAnswer | null => {
    const order = orderOf(JSON.stringify(messages ?? []), '"tool_result"');
    const names = JSON.stringify(tools ?? []);
    const shell = SHELLS.find((name) => names.includes(`"name":"${name}"`));
    if (order.kind === 'hang' && shell !== undefined) {
      hanging += 1;
      return null;
    }
    if (order.kind === 'run' && shell !== undefined) {
      calls += 1;
      const input = { command: order.command, description: 'Runs it' };
      return { call: { id: `toolu_${calls}`, name: shell, input }, usage };
    }
    return { text: order.kind === 'say' ? order.text : 'a title', usage };
  });
  return { url: llm.url, hanging: () => hanging, close: async () => await llm.close() };
}
