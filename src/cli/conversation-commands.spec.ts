import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { eventLines, executionStatus } from './conversation-commands.js';
import { runSlipway } from './slipway-program.js';

const text = (...texts: string[]) => texts.map((part) => ({ type: 'text', text: part }));

const message = (source: string, ...texts: string[]) => ({
  kind: 'MessageEvent',
  source,
  llm_message: { content: text(...texts) },
});
const action = (kind: string, members: object, thought: object[] = []) => ({
  kind: 'ActionEvent',
  thought,
  action: { kind, ...members },
});
const observation = (kind: string, output: string) => ({
  kind: 'ObservationEvent',
  observation: { kind, content: text(output) },
});
const state = (key: string, value: unknown) => ({ kind: 'ConversationStateUpdateEvent', key, value });
const denied = state('EgressDenied', {
  host: 'pypi.org',
  port: 443,
  reason: 'rule',
  rule: null,
  phase: 'agent',
});
const edit = { command: 'str_replace', path: '/w/a', old_str: 'x\ny', new_str: 'z' };
const search = { tool_name: 'search', tool_call: { arguments: '{"q":1}' } };
const acpCall = { kind: 'ACPToolCallEvent', title: 'Read a', status: 'completed' };
const broken = { kind: 'ConversationErrorEvent', code: 'E', detail: 'no credit' };
const rejected = { kind: 'UserRejectObservation', rejection_reason: 'too risky' };

describe('eventLines', () => {
  it.each<[string, unknown, ...string[]]>([
    ['what the user says', message('user', 'Fix it'), 'you: Fix it'],
    ['what the agent says', message('agent', 'Done', 'now'), 'agent: Done\nnow'],
    [
      'a command, after its reason',
      action('TerminalAction', { command: 'ls' }, text('Look first')),
      'agent: Look first',
      '$ ls',
    ],
    ['its output', observation('TerminalObservation', 'a\nb\n'), '    a', '    b'],
    ['no output', observation('TerminalObservation', '')],
    [
      'an edit, as the lines that go and come',
      action('FileEditorAction', edit),
      '• str_replace /w/a',
      '  - x',
      '  - y',
      '  + z',
    ],
    ['the last words', action('FinishAction', { message: 'Bye' }), 'agent: Bye'],
    ['those once', observation('FinishObservation', 'Bye')],
    ['a call of another tool', { ...action('MCPToolAction', {}), ...search }, '• search {"q":1}'],
    ['a call by an ACP agent', acpCall, '• Read a (completed)'],
    ['what went wrong', broken, 'error: no credit'],
    ['an error of a tool', { kind: 'AgentErrorEvent', error: 'bad arguments' }, 'error: bad arguments'],
    ['a refusal', rejected, 'rejected: too risky'],
    ['a new status', state('execution_status', 'running'), '— running'],
    ['nothing of figures', state('stats', {})],
    ['what the network refused', denied, 'network: refused pypi.org (rule)'],
    [
      'control characters disarmed, but for line ends and tabs',
      { kind: 'AgentErrorEvent', error: 'a\u001b[2Jb\n\tc' },
      'error: a\ufffd[2Jb\n\tc',
    ],
    ['nothing of a kind that is not known', { kind: 'constructor' }],
    ['an action of any kind', { kind: 'ActionEvent', action: { kind: 'ActionEvent' } }, '• tool '],
    ['nothing of what is not an event', null],
  ])('shows %s', (_name, event, ...expected) => {
    expect(eventLines(event)).toEqual(expected);
  });

  it('shows the begin of a long output, and says how much more there was', () => {
    const output = Array.from({ length: 50 }, (_, index) => `line ${index}`).join('\n');
    const lines = eventLines(observation('TerminalObservation', output));

    expect(lines).toHaveLength(41);
    expect(lines.at(-1)).toBe('    … 10 more lines');
  });
});

it.each([
  [state('execution_status', 'finished'), 'finished'],
  [state('stats', 'finished'), null],
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
          : { id: `${id}`, ...state('execution_status', value) },
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

describe('slipway run', () => {
  it.each([
    ['https://github.com/o/r/pull/12#discussion_r1', 'github', 'OPEN_PR', 'o/r'],
    ['https://git.example.com/group/sub/r/-/issues/12', 'gitlab', 'OPEN_ISSUE', 'group/sub/r'],
    ['https://bb.example.com/gitlab/group/r/-/merge_requests/12', 'gitlab', 'OPEN_PR', 'group/r'],
    ['http://localhost:7990/projects/KEY/repos/r/pull-requests/12', 'bitbucket', 'OPEN_PR', 'KEY/r'],
    ['https://bitbucket.org/o/r/pull-requests/12/a-title', 'bitbucket', 'OPEN_PR', 'o/r'],
    [
      'https://bb.example.com/projects/KEY/repos/r/pull-requests/12/overview',
      'bitbucket',
      'OPEN_PR',
      'KEY/r',
    ],
    ['https://bb.example.com/users/mona/repos/r/pull-requests/12', 'bitbucket', 'OPEN_PR', '~mona/r'],
  ])('takes the page %s', async (page, git_provider, task_type, repo) => {
    const hosts = {
      github: null,
      gitlab: page.includes('/gitlab/') ? 'bb.example.com/gitlab' : 'git.example.com',
      bitbucket: page.includes('bb.example.com')
        ? 'bb.example.com'
        : page.startsWith('http:')
          ? 'http://localhost:7990'
          : null,
    };
    let sent: unknown = null;
    const service = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        sent = request.method === 'POST' ? JSON.parse(Buffer.concat(chunks).toString()) : sent;
        const isStart = request.method === 'POST';
        const found = request.url === '/api/v1/users/me' ? { provider_tokens_set: hosts } : [];
        response.writeHead(isStart ? 409 : 200, { connection: 'close', 'content-type': 'application/json' });
        response.end(JSON.stringify(isStart ? { detail: 'Not now.' } : found));
      });
    }).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
    const said: string[] = [];
    const output = { result: () => undefined, note: (line: string) => said.push(line) };
    await runSlipway(['run', page], output, () => ({ url, key: 'k', isLocal: false }));
    await once(service.close(), 'close');
    expect(said).toEqual(['slipway: Not now.']);
    expect(sent).toEqual({
      suggested_task: { git_provider, task_type, repo, issue_number: 12, title: '#12' },
    });
  });
});
