import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { eventLines, executionStatus } from './conversation-commands.js';
import { runSlipway } from './slipway-program.js';

const text = (...texts: string[]) => texts.map((part) => ({ type: 'text', text: part }));

describe('eventLines', () => {
  it.each([
    [
      'what the user says',
      { kind: 'MessageEvent', source: 'user', llm_message: { content: text('Fix it') } },
      ['you: Fix it'],
    ],
    [
      'what the agent says',
      { kind: 'MessageEvent', source: 'agent', llm_message: { content: text('Done', 'now') } },
      ['agent: Done\nnow'],
    ],
    [
      'a command, after its reason',
      { kind: 'ActionEvent', thought: text('Look first'), action: { kind: 'TerminalAction', command: 'ls' } },
      ['agent: Look first', '$ ls'],
    ],
    [
      'its output',
      { kind: 'ObservationEvent', observation: { kind: 'TerminalObservation', content: text('a\nb\n') } },
      ['    a', '    b'],
    ],
    [
      'no output',
      { kind: 'ObservationEvent', observation: { kind: 'TerminalObservation', content: text('') } },
      [],
    ],
    [
      'an edit, as the lines that go and come',
      {
        kind: 'ActionEvent',
        thought: [],
        action: {
          kind: 'FileEditorAction',
          command: 'str_replace',
          path: '/w/a',
          old_str: 'x\ny',
          new_str: 'z',
        },
      },
      ['• str_replace /w/a', '  - x', '  - y', '  + z'],
    ],
    [
      'the last words',
      { kind: 'ActionEvent', thought: [], action: { kind: 'FinishAction', message: 'Bye' } },
      ['agent: Bye'],
    ],
    [
      'those once',
      { kind: 'ObservationEvent', observation: { kind: 'FinishObservation', content: text('Bye') } },
      [],
    ],
    [
      'a call of another tool',
      {
        kind: 'ActionEvent',
        thought: [],
        tool_name: 'search',
        tool_call: { arguments: '{"q":1}' },
        action: { kind: 'MCPToolAction' },
      },
      ['• search {"q":1}'],
    ],
    [
      'a call by an ACP agent',
      { kind: 'ACPToolCallEvent', title: 'Read a', status: 'completed' },
      ['• Read a (completed)'],
    ],
    [
      'what went wrong',
      { kind: 'ConversationErrorEvent', code: 'E', detail: 'no credit' },
      ['error: no credit'],
    ],
    ['an error of a tool', { kind: 'AgentErrorEvent', error: 'bad arguments' }, ['error: bad arguments']],
    ['a refusal', { kind: 'UserRejectObservation', rejection_reason: 'too risky' }, ['rejected: too risky']],
    [
      'a new status',
      { kind: 'ConversationStateUpdateEvent', key: 'execution_status', value: 'running' },
      ['— running'],
    ],
    ['nothing of figures', { kind: 'ConversationStateUpdateEvent', key: 'stats', value: {} }, []],
    [
      'control characters disarmed, but for line ends and tabs',
      { kind: 'AgentErrorEvent', error: 'a\u001b[2Jb\n\tc' },
      ['error: a\ufffd[2Jb\n\tc'],
    ],
    ['nothing of a kind that is not known', { kind: 'constructor' }, []],
    ['an action of any kind', { kind: 'ActionEvent', action: { kind: 'ActionEvent' } }, ['• tool ']],
    ['nothing of what is not an event', null, []],
  ])('shows %s', (_name, event, expected) => {
    expect(eventLines(event)).toEqual(expected);
  });

  it('shows the begin of a long output, and says how much more there was', () => {
    const content = text(Array.from({ length: 50 }, (_, index) => `line ${index}`).join('\n'));
    const lines = eventLines({
      kind: 'ObservationEvent',
      observation: { kind: 'TerminalObservation', content },
    });

    expect(lines).toHaveLength(41);
    expect(lines.at(-1)).toBe('    … 10 more lines');
  });
});

it.each([
  [{ kind: 'ConversationStateUpdateEvent', key: 'execution_status', value: 'finished' }, 'finished'],
  [{ kind: 'ConversationStateUpdateEvent', key: 'stats', value: 'finished' }, null],
  [{ kind: 'MessageEvent' }, null],
])('executionStatus of %j is %s', (event, expected) => {
  expect(executionStatus(event)).toBe(expected);
});

describe('slipway watch', () => {
  it.each<[string, string[], string[], boolean?]>([
    ['a message to an agent that has finished', ['running', 'finished'], ['message', 'idle']],
    ['a message to one that was paused', ['running', 'paused'], ['message', 'idle']],
    ['a second message at once', ['running'], ['message', 'idle', 'message']],
    ['a message that is not in the log yet', ['running', 'finished'], ['message', 'idle'], true],
  ])('goes on between the work and %s', async (_name, before, message, isLate = false) => {
    const happens = [...before, ...message, 'running', 'finished'];
    const events = happens.map((value, id) =>
      JSON.stringify(
        value === 'message'
          ? { id: `${id}`, kind: 'MessageEvent', source: 'user' }
          : { id: `${id}`, kind: 'ConversationStateUpdateEvent', key: 'execution_status', value },
      ),
    );
    const seen: string[] = [];
    const service = createServer(({ url }, response) => {
      // The log never has more than was shown, except for what happened before.
      const inLog = before.length + (isLate ? 0 : message.length);
      const logged = events.slice(0, Math.max(seen.length, inLog)).toReversed();
      // A message that was taken shows at once.
      const shown = isLate && seen.length < events.length ? 'running' : 'finished';
      response
        .writeHead(200, { connection: 'close' })
        .end(
          url?.includes('/stream')
            ? events.map((event) => `data: ${event}\n\n`).join('')
            : url?.includes('app-conversations')
              ? `[{"execution_status":"${shown}"}]`
              : `{"items":[${logged.join()}]}`,
        );
    }).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    const output = { result: (line: string) => void seen.push(line), note: () => undefined };
    const status = await runSlipway(['watch', '--json', 'c'], output, () => ({
      url,
      key: 'k',
      isLocal: false,
    }));
    await once(service.close(), 'close');
    expect(status).toBe(0);
    expect(seen).toEqual(events);
  });
});
