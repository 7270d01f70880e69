import { createServer, type ServerResponse } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { startListening } from '../../../../test/support/start-listening.js';
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
const SHELLS = ['Bash', 'run_shell_command', 'bash', 'shell', 'exec_command'];

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

/** The fakes' rules are for our own requests: vendors take more of their own agents. */
const refusalOf = (): null => null;

export async function startOpenAiModel(): Promise<ModelForAgents> {
  let hanging = 0;
  const llm = await ScriptedLlm.start(
    ({ messages, tools }): ScriptedAnswer => {
      const order = orderOf(JSON.stringify(messages), '"role":"tool"');
      const shell = tools.find((name) => SHELLS.includes(name));
      if (order.kind === 'hang' && tools.length > 0) {
        hanging += 1;
        return { kind: 'hang' };
      }
      return order.kind === 'run' && shell !== undefined
        ? call(shell, { command: order.command, description: 'Runs it', is_background: false })
        : say(order.kind === 'say' ? order.text : 'a title');
    },
    { refusalOf },
  );
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
  }, refusalOf);
  return { url: llm.url, hanging: () => hanging, close: async () => await llm.close() };
}

/** What a server of a vendor without a fake of its own answers, in the vendor's form. */
interface Wire {
  /** What stands before the result of a tool. */
  resultMark: string;
  history: (body: Record<string, unknown>) => unknown;
  events: (answer: { text: string } | { shell: string; command: string }, count: number) => unknown[];
}

/** The model behind Codex: OpenAI's Responses API, streamed. */
export async function startResponsesModel(): Promise<ModelForAgents> {
  return await startModel('/v1', {
    resultMark: '"function_call_output"',
    history: ({ input }) => input,
    events: (answer, count) => {
      const id = `resp_${count}`;
      const item =
        'text' in answer
          ? {
              type: 'message',
              id: `msg_${count}`,
              role: 'assistant',
              content: [{ type: 'output_text', text: answer.text }],
            }
          : {
              type: 'function_call',
              id: `fc_${count}`,
              call_id: `call_${count}`,
              name: answer.shell,
              arguments: JSON.stringify({
                cmd: answer.command,
                sandbox_permissions: 'require_escalated',
                justification: 'May it run?',
              }),
            };
      const usage = {
        input_tokens: 1_000,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 50,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: 1_050,
      };
      return [
        { type: 'response.created', response: { id } },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { id, usage } },
      ];
    },
  });
}

/** The model behind Gemini CLI. */
export async function startGeminiModel(): Promise<ModelForAgents> {
  return await startModel('', {
    resultMark: '"functionResponse"',
    history: ({ contents }) => contents,
    events: (answer) => [
      {
        candidates: [
          {
            index: 0,
            finishReason: 'STOP',
            content: {
              role: 'model',
              parts: [
                'text' in answer
                  ? { text: answer.text }
                  : { functionCall: { name: answer.shell, args: { command: answer.command } } },
              ],
            },
          },
        ],
        usageMetadata: { promptTokenCount: 1_000, candidatesTokenCount: 50, totalTokenCount: 1_050 },
      },
    ],
  });
}

async function startModel(base: string, { resultMark, history, events }: Wire): Promise<ModelForAgents> {
  let [hanging, count] = [0, 0];
  const answer = (text: string, response: ServerResponse): void => {
    const body = JSON.parse(text) as Record<string, unknown>;
    const order = orderOf(JSON.stringify(history(body) ?? []), resultMark);
    const names = JSON.stringify(body['tools'] ?? []);
    const shell = SHELLS.find((name) => names.includes(`"name":"${name}"`));
    if (order.kind === 'hang' && shell !== undefined) {
      hanging += 1;
      return;
    }
    count += 1;
    const said =
      order.kind === 'run' && shell !== undefined
        ? { shell, command: order.command }
        : { text: order.kind === 'say' ? order.text : 'a title' };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(
      events(said, count)
        .map((event) => `data: ${JSON.stringify(event)}\n\n`)
        .join(''),
    );
  };
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      void readText(request).then((text) => answer(text, response));
    } else {
      response.writeHead(404).end();
    }
  });
  const port = await startListening(server);
  return {
    url: `http://127.0.0.1:${port}${base}`,
    hanging: () => hanging,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
