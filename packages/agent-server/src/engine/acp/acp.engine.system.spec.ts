import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  engineSettings,
  MemoryEngineHost,
  NEVER_MS,
  SCRIPTED_AGENT,
  scriptedAgent,
} from '../../../test/fakes/memory-engine-host.js';
import { answersOf as answers, codesOf as failures, expectTold } from '../../../test/field/native-agent.js';
import { pastDeadline } from '../../../../../test/support/past-deadline.js';
import { until } from '../../../../../test/support/until.js';
import { toolEnvironment } from '../../tool-view.js';
import type { EngineSettings } from '../agent-engine.js';
import { AcpEngine } from './acp.engine.js';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.js';

const never = new AbortController().signal;

const folder = temporaryFolder();
let engine: AcpEngine;

beforeEach(async () => {
  engine = newEngine();
});

afterEach(async () => {
  await engine.close();
});

function newEngine(): AcpEngine {
  return new AcpEngine({ environment: toolEnvironment(process.env), wrapper: [] });
}

/** Of a conversation, and of how its agent is started. */
type Changes = Omit<Partial<EngineSettings>, 'acp'> & { acp?: Partial<NonNullable<EngineSettings['acp']>> };

/** @param environment of the agent */
function hostFor(changes: Changes = {}, environment: Record<string, string> = {}): MemoryEngineHost {
  const { acp, ...rest } = changes;
  return new MemoryEngineHost(
    engineSettings(folder(), 'http://127.0.0.1:9', {
      ...rest,
      acp: scriptedAgent(folder(), { environment: { HOME: folder(), ...environment }, ...acp }),
    }),
  );
}

async function run(
  text: string,
  changes: Changes = {},
  environment: Record<string, string> = {},
): Promise<MemoryEngineHost> {
  // An engine knows one conversation.
  await begunAgain();
  const host = hostFor(changes, environment);
  await goOn(host, text);
  return host;
}

async function goOn(host: MemoryEngineHost, text: string): Promise<void> {
  await host.say(text);
  await engine.run(host, never);
}

/** As after a restart. */
async function begunAgain(): Promise<void> {
  await engine.close();
  engine = newEngine();
}

describe('a run', () => {
  it('ends with the message, in one piece', async () => {
    const host = await run('hello');
    expect(host.status).toBe('finished');
    expect(host.log.map(({ kind }) => kind)).toEqual(['MessageEvent', 'SystemPromptEvent', 'MessageEvent']);
    expect(answers(host)).toEqual(['Hello, world.']);
    expect(host.drafts.at(-1)).toEqual({ text: 'Hello, world.', reasoning: '' });
  });

  it('writes tool calls when they begin and when they have ended', async () => {
    const host = await run('tool ls -l');
    expect(host.ofKind('ACPToolCallEvent')).toEqual([
      expect.objectContaining({
        tool_call_id: 'call-1',
        title: 'ls -l',
        status: 'pending',
        tool_kind: 'execute',
        is_error: false,
      }),
      expect.objectContaining({
        tool_call_id: 'call-1',
        status: 'completed',
        raw_input: { command: 'ls -l' },
        raw_output: { exit: 0 },
        content: [
          { type: 'content', content: { type: 'text', text: 'did ls -l' } },
          { type: 'diff', path: `${folder()}/a.txt`, old_text: 'a', new_text: 'b' },
        ],
      }),
    ]);
  });

  it('writes a call again when the agent tells what it does', async () => {
    const host = await run('prepare rm -r build');
    expect(
      host.ofKind('ACPToolCallEvent').map(({ title, raw_input, status }) => [title, raw_input, status]),
    ).toEqual([
      ['Terminal', {}, 'pending'],
      ['rm -r build', { command: 'rm -r build' }, 'pending'],
      ['rm -r build', { command: 'rm -r build', description: 'Runs it' }, 'completed'],
    ]);
  });

  it('writes each message of a turn on its own, if the agent tells them apart', async () => {
    expect(answers(await run('messages'))).toEqual(['No id. ', 'One, and more.', 'Another.']);
  });

  it('writes thoughts and plans as our own tools would have', async () => {
    const host = await run('think');
    expect(host.ofKind('ActionEvent').map(({ action }) => action)).toEqual([
      { kind: 'ThinkAction', thought: 'I think.' },
    ]);
    expect(host.ofKind('MessageEvent').at(-1)?.llm_message.reasoning_content).toBe('I know.');
    await goOn(host, 'plan');
    expect(host.ofKind('ObservationEvent').at(-1)?.observation).toMatchObject({
      kind: 'TaskTrackerObservation',
      task_list: [
        { title: 'first', status: 'done' },
        { title: 'second', status: 'in_progress' },
        { title: 'third', status: 'todo' },
      ],
    });
  });

  it('gives each message once, with the instructions before the first', async () => {
    const host = await run('prompt', { systemPromptSuffix: 'Be brief.', language: 'German' });
    expect(answers(host)).toEqual([JSON.stringify('Be brief.\nAnswer in this language: German.\nprompt')]);
    await host.say('first');
    await goOn(host, 'prompt');
    expect(answers(host).at(-1)).toBe(JSON.stringify('first\nprompt'));
  });

  it('answers messages that arrive during its work', async () => {
    const host = hostFor();
    await host.say('many 3');
    let hasSaid = false;
    host.onAppend = ({ kind }) => {
      if (kind === 'ACPToolCallEvent' && !hasSaid) {
        hasSaid = true;
        void host.say('hello');
      }
    };
    await engine.run(host, never);
    expect(answers(host)).toEqual(['made many', 'Hello, world.']);
  });
});

describe('what the agent asks its client for', () => {
  it('reads and writes files of the workspace', async () => {
    await writeFile(folder('a.txt'), 'one\ntwo\nthree\n');
    const host = await run(`read ${folder()}/a.txt`);
    expect(answers(host)).toEqual(['read two']);
    await goOn(host, 'write new/b.txt some words');
    expect(await readFile(folder('new/b.txt'), 'utf8')).toBe('some words');
  });

  it('refuses what is outside of it, or not there', async () => {
    const host = await run('refused /etc/passwd');
    await goOn(host, 'refused ../../etc/passwd');
    await goOn(host, 'refused missing.txt');
    const outside = expect.stringContaining('is not inside the workspace');
    expect(answers(host)).toEqual([outside, outside, expect.stringContaining('does not exist')]);
  });

  it('runs commands, and keeps the end of their output', async () => {
    const host = await run('shell echo $GIVEN; pwd >&2; exit 4');
    await goOn(host, 'shell kill -TERM $$');
    const [ran, killed] = answers(host);
    expect(JSON.parse(ran ?? '')).toMatchObject({ exitCode: 4, truncated: true });
    expect(JSON.parse(killed ?? '')).toMatchObject({ exitCode: null, signal: 'SIGTERM', output: '' });
  });

  it('runs no more commands at once than are allowed, and ends them with the conversation', async () => {
    const host = await run('shells');
    expect(answers(host)).toEqual(['32 made']);
    await engine.close();
  });
});

describe('permissions', () => {
  it('are given at once where nothing is to be confirmed', async () => {
    const host = await run('ask-always');
    expect([host.statuses, answers(host)]).toEqual([['finished'], ['always']]);
  });

  // zed-industries/zed#52782: the user is asked about "Terminal", and cannot know what it would run.
  it('show the user all that is known of the call', async () => {
    const host = await run('prepare rm -r build', { confirmationPolicy: 'always' });
    expect(host.status).toBe('waiting_for_confirmation');
    expect(host.ofKind('ACPToolCallEvent').at(-1)).toMatchObject({
      title: 'rm -r build',
      raw_input: { command: 'rm -r build', description: 'Runs it' },
      status: 'pending',
    });
  });

  it('wait for the user, who rejects and says why', async () => {
    const host = await run('ask rm', { confirmationPolicy: 'always' });
    await engine.confirm(host, 'never that', never);
    expect(host.status).toBe('idle');
    const calls = host.ofKind('ACPToolCallEvent');
    expect(calls).toHaveLength(2);
    expect(calls[1]).toMatchObject({ status: 'failed', is_error: true });
    expect(JSON.stringify(calls[1]?.content)).toContain('never that');
    await goOn(host, 'prompt');
    expect(answers(host)).toEqual([
      'not allowed: no',
      JSON.stringify('The user rejected a call: never that\nprompt'),
    ]);
  });

  it('of several calls wait together', async () => {
    const host = await run('ask-two', { confirmationPolicy: 'always' });
    while (host.status === 'waiting_for_confirmation') {
      await engine.confirm(host, null, never);
    }
    expect(answers(host)).toEqual(['yes yes']);
  });

  it.each([
    ['never', 'finished'],
    ['risky', 'finished'],
    ['always', 'waiting_for_confirmation'],
  ] as const)('to read with the policy %s: %s', async (confirmationPolicy, status) => {
    expect((await run('ask-unknown', { confirmationPolicy })).status).toBe(status);
  });

  it('are withdrawn when the user writes instead', async () => {
    const host = await run('ask rm', { confirmationPolicy: 'always' });
    await goOn(host, 'hello');
    expect(host.status).toBe('finished');
    expect(answers(host)).toEqual(['not allowed: cancelled', 'Hello, world.']);
  });

  // echoVic/orca-agent#76, QwenLM/qwen-code#5258: an agent that is refused a call ends its prompt with an error.
  it('that are refused end the run of an agent that fails then, and not as an error', async () => {
    const host = await run('ask-or-fail rm', { confirmationPolicy: 'always' });
    await engine.confirm(host, 'not that one', never);
    expect(host.status).toBe('paused');
    expect(failures(host)).toEqual([]);
    await goOn(host, 'hello');
    expect([host.status, answers(host).at(-1)]).toEqual(['finished', 'Hello, world.']);
  });

  it.each(['never', 'always'] as const)(
    'that are asked for when the turn is cancelled are cancelled too (%s)',
    async (confirmationPolicy) => {
      const host = hostFor({ confirmationPolicy });
      await host.say('ask-when-cancelled');
      const running = engine.run(host, never);
      await until(() => host.ofKind('ACPToolCallEvent').length === 1);
      host.pause = true;
      await running;
      expect(host.status).toBe('paused');
      host.pause = false;
      await goOn(host, 'late-answers');
      expect(answers(host)).toEqual(['cancelled cancelled']);
      expect(failures(host)).toEqual([]);
    },
  );

  it('are asked for again by an agent that was started again', async () => {
    const host = await run('ask rm', { confirmationPolicy: 'always' });
    await begunAgain();
    await engine.confirm(host, null, never);
    expect(host.ofKind('ACPToolCallEvent').at(-1)).toMatchObject({ status: 'failed' });
    expect(answers(host)).toEqual(['you said: Your work was interrupted. Go on where you stopped.']);
  });
});

it('pause ends an agent that does not listen, and goes on with its session', async () => {
  const host = hostFor();
  await host.say('stubborn');
  const aborter = new AbortController();
  const pause = async (): Promise<void> => {
    const running = engine.run(host, aborter.signal);
    await until(() => host.ofKind('ACPToolCallEvent').length === 1);
    aborter.abort();
    await running;
  };
  // What it has to end its turn, and to end itself.
  await pastDeadline(pause, () => true, 5_000, [1_000]);
  expect(host.status).toBe('paused');
  await goOn(host, 'remember');
  expect(answers(host)).toEqual(['I know: stubborn']);
  expect(failures(host)).toEqual([]);
});

describe('an agent that is started again', () => {
  it('loads its session, and what it replays is not written twice', async () => {
    const host = await run('first');
    await begunAgain();
    await goOn(host, 'remember');
    expect(answers(host)).toEqual(['you said: first', 'I know: first']);
    expect(failures(host)).toEqual([]);
    expect(host.ofKind('SystemPromptEvent')).toHaveLength(1);
  });

  // OpenHands/software-agent-sdk#5094
  it('is told what was said and done where it remembers nothing, and that is said', async () => {
    const host = await run('first', {}, { NO_LOAD: '1' });
    await begunAgain();
    await goOn(host, 'prompt');
    expect(answers(host).at(-1)).toContain(String.raw`\n\nUSER: first\nYOU: you said: first\nprompt`);
    expect(failures(host)).toEqual(['ACPSessionLost']);
  });

  it('says when its session is gone', async () => {
    const host = await run('first');
    await engine.close();
    await rm(folder('.scripted-agent'), { recursive: true, maxRetries: 10 });
    engine = newEngine();
    await engine.run(host, never);
    expect(failures(host)).toEqual(['ACPSessionLost']);
    // Without a new message it is given the last one again.
    expect(answers(host)).toEqual(['you said: first', 'you said: first']);
  });
});

describe('limits and costs', () => {
  it('counts what the session costs, once, and stops at the budget', async () => {
    const host = await run('spend 0.25');
    await goOn(host, 'spend 0.40');
    expect(host.totals().costUsd).toBeCloseTo(0.4);
    expect(host.usage.reduce((sum, { promptTokens }) => sum + promptTokens, 0)).toBe(200);
    const limited = await run('spend 2', { maxBudget: 1 });
    expect(failures(limited)).toEqual(['MaxBudgetReached']);
  });

  it('counts no cost in another currency, and tokens that are reported elsewhere', async () => {
    const host = await run('spend 5 EUR');
    expect(host.totals().costUsd).toBe(0);
    await goOn(host, 'tokens');
    const uncounted = { costUsd: null, costSource: 'unknown', isStep: true };
    expect(host.usage.at(-1)).toEqual({ promptTokens: 7, completionTokens: 3, ...uncounted });
  });

  // MessageEmitter.ts of QwenLM/qwen-code: one empty chunk after each call of the model, whose cached tokens are input, too.
  it('counts the tokens that come with chunks, where the turn tells none', async () => {
    expect((await run('tokens-with-chunks')).usage).toEqual([
      { promptTokens: 200, completionTokens: 40, costUsd: null, costSource: 'unknown', isStep: true },
    ]);
  });

  // agentclientprotocol/claude-agent-acp#390: the schema says both. Copilot 1.0.102 adds up all turns of a process, Vibe
  // 3.0.2 those of a session, Claude Code 0.101 counts each turn.
  it.each([
    ['scripted', 100 + 150 + 150, 10 + 12 + 12],
    ['Copilot', 150 + 40, 12 + 4],
  ])('counts the tokens of %s once', async (name, prompt, completion) => {
    const host = await run('used 100 10', {}, { NAME: name });
    for (const usage of ['150 12', '150 12']) {
      await goOn(host, `used ${usage}`);
    }
    if (name === 'Copilot') {
      await begunAgain();
      await goOn(host, 'used 40 4');
    }
    const sum = (member: 'promptTokens' | 'completionTokens'): number =>
      host.usage.reduce((total, usage) => total + usage[member], 0);
    expect([sum('promptTokens'), sum('completionTokens')]).toEqual([prompt, completion]);
  });

  it('ends a turn as it stops', async () => {
    const host = await run('stop end_turn');
    for (const reason of ['refusal', 'max_tokens', 'something new']) {
      await goOn(host, `stop ${reason}`);
    }
    expect(host.statuses).toEqual(['finished', 'error', 'error', 'error']);
    expect(failures(host)).toEqual(['UsagePolicyRefusal', 'ACPTurnLimit', 'ACPTurnLimit']);
  });
});

describe('models, modes and tool servers', () => {
  it.each<Record<string, string>>([{}, { OLD_MODELS: '1' }])(
    'are chosen at the start and later (%j)',
    async (environment) => {
      const host = await run('session', { acp: { model: 'large', sessionMode: 'plan' } }, environment);
      expect(JSON.parse(answers(host)[0] ?? '')).toMatchObject({ model: 'large', mode: 'plan' });
      await engine.switchModel(host, 'small');
      expect(host.details?.currentModel).toBe('small');
      await begunAgain();
      await goOn(host, 'session');
      expect(JSON.parse(answers(host)[1] ?? '')).toMatchObject({ model: 'small' });
      await expect(engine.switchModel(host, 'huge')).rejects.toThrow(
        'The agent does not take the model huge; it offers small, large.',
      );
    },
  );

  it('that it does not have are named beside those that it has', async () => {
    const host = await run('hello', { acp: { sessionMode: 'no-such-mode' } });
    expect(host.ofKind('ConversationErrorEvent')[0]?.detail).toContain(
      'does not take the mode no-such-mode; it offers ask, plan.',
    );
  });

  it('are those of the user, as far as the agent connects to them', async () => {
    const mcpConfig = {
      local: { command: 'node', args: ['server.mjs'], env: { KEY: 'value' } },
      remote: { url: 'https://tools.example/mcp', transport: 'http' as const, headers: { A: 'Bearer x' } },
    };
    const host = await run('session', { mcpConfig });
    expect(JSON.parse(answers(host)[0] ?? '').mcp).toEqual([
      { name: 'local', command: 'node', args: ['server.mjs'], env: [{ name: 'KEY', value: 'value' }] },
    ]);
    expect(failures(host)).toEqual(['McpServerUnavailable']);
    const both = await run('session', { mcpConfig }, { WITH_HTTP: '1' });
    expect(JSON.parse(answers(both)[0] ?? '').mcp).toHaveLength(2);
  });

  it('signs in with a key of its environment', async () => {
    const byKey = { GEMINI_API_KEY: 'gemini-api-key', OWN_API_KEY: 'own-key' };
    for (const [variable, signedIn] of Object.entries(byKey)) {
      const host = await run('session', {}, { NEED_KEY: '1', [variable]: 'a-key' });
      expect(JSON.parse(answers(host)[0] ?? '')).toMatchObject({ signedIn });
    }
    const without = await run('hello', {}, { NEED_KEY: '1' });
    const detail = /: Authentication required\. It takes .* sign in: Key \(Set GEMINI_API_KEY\); Own\.$/;
    expectTold(without, 'ACPAuthRequired', detail);
  });
});

it('a question beside the work is answered by a copy of the session, or refused where there are none', async () => {
  const host = await run('first');
  expect(await engine.ask(host, 'remember')).toBe('I know: first');
  expect(answers(host)).toEqual(['you said: first']);
  expect(await engine.condense()).toBe(false);
  const other = await run('first', {}, { NO_FORK: '1' });
  await expect(engine.ask(other, 'remember')).rejects.toThrow('answers no questions');
});

describe('an agent that cannot be started', () => {
  const OTHER = 'other than the Agent Client Protocol';
  it.each<[Record<string, string>, string, string, string[]?]>([
    [{}, 'ACPSpawnError', 'no-such-agent was not found', ['no-such-agent']],
    [{ START: 'dies' }, 'ACPAgentEnded', 'exit code 3. It wrote: the agent has no configuration'],
    [{ START: 'says-why' }, 'ACPAgentEnded', 'exit code 0. It wrote: This program is no longer maintained.'],
    [{ START: 'version' }, 'ACPInitError', 'version 99'],
    [{ START: 'endless-noise' }, 'ACPProtocolError', OTHER],
  ])('%j: %s', async (environment, code, detail, command = SCRIPTED_AGENT) => {
    const host = await run('hello', { acp: { command } }, environment);
    expectTold(host, code, detail);
    await expect(engine.prepare(host)).rejects.toThrow(detail);
  });

  it('has a time limit, after which what it wrote is quoted', async () => {
    const script = `echo Open this page to sign in >&2; touch ${folder('written')}; exec sleep 1000`;
    const host = hostFor({ acp: { command: ['bash', '-c', script] } });
    const hasRead = async () => existsSync(folder('written')) && (await nextTurn(true));
    await expect(pastDeadline(() => engine.prepare(host), hasRead, NEVER_MS)).rejects.toThrow(
      'did not begin within 600 seconds. It wrote: Open this page to sign in',
    );
  });
});

describe('a hostile agent', () => {
  const counted = Array.from({ length: 30 }, (_, count) => `${count} `).join('');
  it.each<[string, string, string[], string, Changes?, Record<string, string>?]>([
    ['may write other lines between its messages', 'garbage', [], 'still here', {}, { START: 'noise' }],
    ['may write more of them in time than any one message has', 'chatter', [], counted],
    ['ends with a line that is too long', 'long-line', ['ACPProtocolError'], ''],
    ['is stopped when it does nothing', 'idle', ['ACPIdleTimeout'], '', { acp: { idleTimeoutMs: 300 } }],
  ])('%s', async (_, turn, codes, said, changes = {}, environment = {}) => {
    const host = await run(turn, changes, environment);
    expect([host.status, failures(host)]).toEqual([codes.length === 0 ? 'finished' : 'error', codes]);
    expect(answers(host).join('')).toBe(said);
  });

  it('may die in the middle of its work, and is started again', async () => {
    const host = await run('die');
    expect(host.ofKind('ACPToolCallEvent').at(-1)).toMatchObject({ status: 'failed' });
    expectTold(host, 'ACPAgentEnded', 'ended with exit code 9. It wrote: the last words of an agent');
    await goOn(host, 'remember');
    expect(answers(host)).toEqual(['I know: die']);
  });

  it('may use an id twice, and end no call', async () => {
    const host = await run('collide');
    const calls = host
      .ofKind('ACPToolCallEvent')
      .map(({ tool_call_id: id, title, status }) => [id, title, status]);
    expect(calls).toEqual([
      ['same', 'call 0', 'pending'],
      ['same', 'call 0', 'completed'],
      [expect.stringMatching(/^same-/), 'call 1', 'pending'],
      [calls[2]?.[0], 'call 1', 'completed'],
      ['open', 'never ended', 'pending'],
      ['open', 'never ended', 'completed'],
    ]);
  });

  it('writes nothing that is too deep or too long', async () => {
    const host = await run('deep');
    const [first, last] = host.ofKind('ACPToolCallEvent');
    expect(first?.title.length).toBeLessThan(1_000);
    expect(JSON.stringify(last).length).toBeLessThan(100_000);
  });

  it('waits until what it wrote is stored', async () => {
    const host = await run('flood');
    expect(answers(host).join('')).toHaveLength(2_000_000);
  });
});
