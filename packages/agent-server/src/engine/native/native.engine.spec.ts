import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readFile, writeFile } from 'node:fs/promises';
import { engineSettings, MemoryEngineHost } from '../../../test/fakes/memory-engine-host.js';
import { RemoteMcpServer } from '../../../test/fakes/mcp-servers/remote-mcp-server.js';
import { call, calls, fails, say } from '../../../test/fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder, type Script, ScriptedLlm } from '../../../test/fakes/scripted-llm.js';
import { answersOf, codesOf, expectDone, expectTold, resultsOf } from '../../../test/field/native-agent.js';
import type { EngineSettings } from '../agent-engine.js';
import { NativeEngine } from './native.engine.js';
import { processLives } from '../../../../../test/support/process-lives.js';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.js';

const folder = temporaryFolder();
let llm: ScriptedLlm;
let engine: NativeEngine;
let waits: number[];

beforeEach(async () => {
  llm = await ScriptedLlm.start(inOrder(say('done')));
  waits = [];
  engine = new NativeEngine({
    wait: async (milliseconds) => {
      waits.push(milliseconds);
    },
  });
});

afterEach(async () => {
  await engine.close();
  await llm.close();
});

async function start(script: Script, changes: Partial<EngineSettings> = {}): Promise<MemoryEngineHost> {
  llm.script = script;
  const host = new MemoryEngineHost(engineSettings(folder(), llm.url, changes));
  await host.say('Please do it.');
  return host;
}

const never = new AbortController().signal;

async function run(script: Script, changes: Partial<EngineSettings> = {}): Promise<MemoryEngineHost> {
  const host = await start(script, changes);
  await engine.run(host, never);
  return host;
}

describe('a run', () => {
  it('shows answers while they are written, with thoughts apart, and takes back those that break off', async () => {
    const whole = '<think>So be it.</think>It is done.';
    const host = await run(inOrder({ kind: 'cut', text: 'It is al' }, { kind: 'answer', text: whole }));
    expect(host.drafts).toEqual([
      { text: 'It is a', reasoning: '' },
      { text: 'It is al', reasoning: '' },
      null,
      { text: '', reasoning: '' },
      { text: '', reasoning: 'So be i' },
      { text: '', reasoning: 'So be it.</thi' },
      { text: 'It i', reasoning: 'So be it.' },
      { text: 'It is done.', reasoning: 'So be it.' },
    ]);
    expect(waits).toEqual([2_000]);
    expect(answersOf(host)).toEqual(['It is done.']);
  });

  it('shows what it finishes with while that is written, behind what it has said', async () => {
    const message = 'It says "done" \u00e4\n\\ and more.';
    const whole = `Well.\n\n${message}`;
    const host = await run(inOrder(call('finish', { message }, { text: 'Well.' })));
    const shown = host.drafts.map((draft) => draft?.text ?? '');
    expect(shown.filter((text) => !whole.startsWith(text))).toEqual([]);
    expect(shown.at(-1)).toBe(whole);
    expect(new Set(shown.map((text) => text.length)).size).toBeGreaterThan(3);
    const other = await run(inOrder(call('think', { thought: 'x', message: 'No.' }), say('Done.')));
    expect(JSON.stringify(other.drafts)).not.toContain('No.');
  });

  it('ends with a message', async () => {
    const host = await run(inOrder(say('All is well.')));
    expect(host.status).toBe('finished');
    expect(host.log.map(({ kind }) => kind)).toEqual(['MessageEvent', 'SystemPromptEvent', 'MessageEvent']);
    expect(host.log[2]).toMatchObject({
      source: 'agent',
      llm_message: { role: 'assistant', content: [{ type: 'text', text: 'All is well.' }] },
    });
    const tokens = { promptTokens: expect.any(Number), completionTokens: expect.any(Number) };
    expect(host.usage).toEqual([{ ...tokens, costUsd: null, costSource: 'unknown', isStep: true }]);
    expect(llm.requests[0]).toMatchObject({
      model: 'scripted',
      tools: ['terminal', 'file_editor', 'task_tracker', 'think', 'finish'],
    });
    expect(llm.requests[0]?.headers['authorization']).toBe('Bearer key-of-the-model');
  });

  it('logs a call before it runs and its result after it, and shows the model both', async () => {
    const host = await start(
      inOrder(
        call('terminal', { command: 'echo one; exit 3' }, { text: 'Let me look.' }),
        call('finish', { message: 'Done.' }),
      ),
    );
    await engine.run(host, never);
    expect(host.status).toBe('finished');
    expect(host.log.map(({ kind }) => kind)).toEqual([
      'MessageEvent',
      'SystemPromptEvent',
      'ActionEvent',
      'ObservationEvent',
      'ActionEvent',
      'ObservationEvent',
    ]);
    const [action] = host.ofKind('ActionEvent');
    const [observation] = host.ofKind('ObservationEvent');
    expect(action).toMatchObject({
      thought: [{ type: 'text', text: 'Let me look.' }],
      action: { kind: 'TerminalAction', command: 'echo one; exit 3' },
      tool_call: { name: 'terminal', origin: 'completion' },
      security_risk: 'UNKNOWN',
    });
    expect(observation).toMatchObject({
      action_id: action?.id,
      tool_call_id: action?.tool_call_id,
      observation: { kind: 'TerminalObservation', exit_code: 3 },
    });
    const history = llm.requests[1]?.messages ?? [];
    expect(history.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool']);
    expect(history[2]?.tool_calls?.[0]?.function).toEqual({
      name: 'terminal',
      arguments: JSON.stringify({ command: 'echo one; exit 3' }),
    });
    expect(history[3]?.content).toContain('one');
  });

  it('does not run calls after finish', async () => {
    const late = { name: 'terminal', arguments: { command: 'touch late' } };
    const host = await run(inOrder(calls({ name: 'finish', arguments: { message: 'Done.' } }, late)));
    expect(host.status).toBe('finished');
    expect(host.ofKind('AgentErrorEvent')).toMatchObject([
      { error: 'Not run: an earlier call ended the work.' },
    ]);
  });

  it('continues when the user wrote while the model responded', async () => {
    const host = await start(async ({ index }) => {
      if (index === 0) {
        await host.say('And another thing.');
      }
      return say(`answer ${index}`);
    });
    await engine.run(host, never);
    expect(llm.requests).toHaveLength(2);
    expect(llm.requests[1]?.text).toContain('And another thing.');
    expect(host.status).toBe('finished');
  });

  it('continues from a log that breaks off in a call', async () => {
    const host = await start(inOrder(say('Seen.')));
    await host.append({
      kind: 'ActionEvent',
      source: 'agent',
      thought: [],
      thinking_blocks: [],
      action: { kind: 'TerminalAction', command: 'sleep 100', is_input: false, reset: false },
      tool_name: 'terminal',
      tool_call_id: 'lost',
      tool_call: { id: 'lost', name: 'terminal', arguments: '{"command":"sleep 100"}', origin: 'completion' },
      llm_response_id: 'r1',
      security_risk: 'UNKNOWN',
    });
    await engine.run(host, never);
    expect(host.ofKind('AgentErrorEvent')).toMatchObject([{ tool_call_id: 'lost' }]);
    expect(llm.requests[0]?.messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'lost' });
    expect(host.status).toBe('finished');
  });

  it('stops after the same call with the same result four times', async () => {
    const host = await run(inOrder(call('terminal', { command: 'echo same' })));
    expectTold(host, 'AgentStuck', 'same', 'stuck');
    expect(llm.requests).toHaveLength(4);
    const settings = { stuckDetection: false, maxIterations: 6 };
    const other = await run(inOrder(call('terminal', { command: 'echo same' })), settings);
    expect(codesOf(other)).toEqual(['MaxIterationsReached']);
  });
});

describe('limits', () => {
  it('makes exactly the allowed number of steps, and starts a new count with each message', async () => {
    const host = await run(({ index }) => call('think', { thought: `step ${index}` }), { maxIterations: 3 });
    expect(llm.requests).toHaveLength(3);
    expectTold(host, 'MaxIterationsReached');
    expect(host.ofKind('ObservationEvent')).toHaveLength(3);
    llm.script = () => say('done');
    await host.say('Go on.');
    await engine.run(host, never);
    expect(host.status).toBe('finished');
  });

  it('stops after the step that reaches the budget', async () => {
    const usage = { promptTokens: 1_000, completionTokens: 500 };
    const host = await run(({ index }) => call('think', { thought: `step ${index}` }, { usage }), {
      maxBudget: 0.04,
      modelPrices: { scripted: { input: 10, output: 20 } },
    });
    expect(host.usage.map(({ costUsd }) => costUsd)).toEqual([0.02, 0.02]);
    expectTold(host, 'MaxBudgetReached');
    expect(host.ofKind('ObservationEvent')).toHaveLength(2);
  });

  it('reports once that a budget is not enforced when the price is unknown', async () => {
    const think = call('think', { thought: 'a' });
    const host = await run(inOrder(think, think, say('done')), { maxBudget: 1 });
    expectTold(host, 'BudgetNotEnforced', '', 'finished');
  });
});

describe('a model that fails', () => {
  it('is not retried after 401, and the reason is shown', async () => {
    const host = await run(inOrder(fails(401, 'Incorrect API key provided'), say('done')));
    expect(llm.requests).toHaveLength(1);
    expectTold(
      host,
      'LlmAuthenticationFailed',
      "The model's provider answered 401: Incorrect API key provided",
    );
    await host.say('Try again.');
    await engine.run(host, never);
    expect(host.status).toBe('finished');
  });

  it('is retried after 429, when it says', async () => {
    const slow = (seconds: string) => fails(429, 'slow', { 'retry-after': seconds });
    const host = await run(inOrder(slow('7'), slow('900'), say('done')));
    expect(waits).toEqual([7_000, 4_000]);
    expect(host.status).toBe('finished');
  });

  it('is retried for a minute after 500, and each time is told', async () => {
    const host = await run(inOrder(fails(500, 'The engine is on fire')));
    expect(llm.requests).toHaveLength(6);
    expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 32_000]);
    expect(host.status).toBe('error');
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      ...waits.map((pause) => ({
        code: 'LlmRetried',
        detail: expect.stringContaining(`on fire The call is repeated in ${pause / 1000} s.`),
      })),
      { code: 'LlmUnavailable', detail: expect.stringContaining('The engine is on fire') },
    ]);
  });

  it.each([
    ['sends no byte', { kind: 'hang' } as const],
    ['falls silent in the middle', { kind: 'stall', text: 'Well, I think' } as const],
  ])('counts as failed when it %s', async (_, answer) => {
    const host = await run(inOrder(answer), { llmTimeoutMs: 300 });
    expect(llm.requests).toHaveLength(1);
    expectTold(host, 'LlmTimeout', 'The model sent nothing for 0.3 s.');
  });

  it('is retried after an empty response', async () => {
    const host = await run(inOrder(say('')));
    expect(llm.requests).toHaveLength(4);
    expect(host.ofKind('ConversationErrorEvent').at(-1)).toMatchObject({ code: 'LlmEmptyAnswer' });
  });
});

const risksOf = (host: MemoryEngineHost) =>
  host.ofKind('ActionEvent').map(({ security_risk }) => security_risk);

describe('confirmation', () => {
  it('tells the model why a call was rejected', async () => {
    const host = await run(inOrder(call('terminal', { command: 'rm -rf x' }), say('I will not.')), {
      confirmationPolicy: 'always',
    });
    await engine.confirm(host, 'not that one', never);
    expect(host.status).toBe('idle');
    await engine.run(host, never);
    expect(host.ofKind('UserRejectObservation')).toMatchObject([
      {
        rejection_reason: 'not that one',
        rejection_source: 'user',
        action_id: host.ofKind('ActionEvent')[0]?.id,
      },
    ]);
    expect(llm.requests[1]?.messages.at(-1)?.content).toContain('not that one');
    expect(host.status).toBe('finished');
  });

  it('does not ask for thinking and finishing', async () => {
    const host = await run(inOrder(call('think', { thought: 'hm' }), call('finish', { message: 'bye' })), {
      confirmationPolicy: 'always',
    });
    expect(host.status).toBe('finished');
  });

  it('asks the model for the risk and runs only low ones unconfirmed', async () => {
    const host = await run(
      inOrder(
        call('terminal', { command: 'echo low', security_risk: 'LOW' }),
        call('terminal', { command: 'echo high', security_risk: 'HIGH' }),
        call('terminal', { command: 'echo unknown' }),
        say('done'),
      ),
      { confirmationPolicy: 'risky' },
    );
    expect(llm.requests[0]?.toolSchemas['terminal']).toMatchObject({
      properties: { security_risk: { enum: ['LOW', 'MEDIUM', 'HIGH'] } },
      required: expect.arrayContaining(['command', 'security_risk']),
    });
    expect(llm.requests[0]?.toolSchemas['finish']).not.toMatchObject({
      properties: { security_risk: expect.anything() },
    });
    expect(resultsOf(host)).toHaveLength(1);
    expect(host.status).toBe('waiting_for_confirmation');
    await engine.confirm(host, null, never);
    expect(host.status).toBe('waiting_for_confirmation');
    expect(risksOf(host)).toEqual(['LOW', 'HIGH', 'UNKNOWN']);
    await engine.confirm(host, null, never);
    expect(host.status).toBe('finished');
  });
});

describe('analyzers of risks', () => {
  it('ask for what they find risky, whatever the model says', async () => {
    const analyzer = { kind: 'PolicyRailSecurityAnalyzer' } as const;
    const risk = { analyzer, threshold: 'HIGH' as const, confirmUnknown: true };
    const host = await run(
      inOrder(
        call('terminal', { command: 'echo low' }),
        call('terminal', { command: 'echo "rm -rf /" | true' }),
        call('terminal', { command: 'true || rm -rf /', security_risk: 'LOW' }),
        say('done'),
      ),
      { confirmationPolicy: 'risky', risk },
    );
    expect(JSON.stringify(llm.requests[0]?.toolSchemas['terminal'])).not.toContain('security_risk');
    expect(host.status).toBe('waiting_for_confirmation');
    expect(risksOf(host)).toEqual(['LOW', 'LOW', 'HIGH']);
    expect(resultsOf(host)).toHaveLength(2);
  });
});

describe('tool servers', () => {
  it('are not called where the operator does not allow it, nor is the model', async () => {
    const remote = await RemoteMcpServer.start();
    const host = await run(inOrder(say('done')), {
      mcpConfig: { calculator: { url: remote.httpUrl, transport: 'http' } },
      outboundAllowlist: [new URL(llm.url).origin],
    });
    expectTold(host, 'McpServerUnavailable', 'OUTBOUND_ALLOWLIST', 'finished');
    host.settings = { ...host.settings, outboundAllowlist: ['llm.example.com'] };
    await host.say('Again.');
    await engine.run(host, never);
    await remote.close();
    expect(remote.requests).toEqual([]);
    expect(host.ofKind('ConversationErrorEvent').at(-1)).toMatchObject({
      code: 'LlmNotConfigured',
      detail: expect.stringContaining('llm_base_url: This server may not be used'),
    });
    expect(llm.requests).toHaveLength(1);
  });

  it('are used, without those that fail', async () => {
    const remote = await RemoteMcpServer.start();
    const host = await run(inOrder(call('add', { a: 20, b: 22 }), say('It is 42.')), {
      mcpConfig: {
        calculator: { url: remote.httpUrl, transport: 'http' },
        dead: { command: 'no-such-program-anywhere' },
      },
    });
    await engine.close();
    await remote.close();
    const dead = 'The tool server dead (no-such-program-anywhere) cannot be used';
    expectTold(host, 'McpServerUnavailable', dead, 'finished');
    expect(host.ofKind('ActionEvent')[0]?.action).toEqual({ kind: 'MCPToolAction', data: { a: 20, b: 22 } });
    expect(host.ofKind('ObservationEvent')[0]?.observation).toMatchObject({
      kind: 'MCPToolObservation',
      tool_name: 'add',
      content: [{ type: 'text', text: '42' }],
    });
    expect(llm.requests[1]?.messages.at(-1)?.content).toBe('42');
  });
});

describe('pause and interruption', () => {
  it('pauses after the step, and continues later', async () => {
    const host = await start(inOrder(call('think', { thought: 'a' }), say('done')));
    host.onAppend = ({ kind }) => {
      if (kind === 'ActionEvent') {
        host.pause = true;
      }
    };
    await engine.run(host, never);
    expect(host.status).toBe('paused');
    expect(host.ofKind('ObservationEvent')).toHaveLength(1);
    host.onAppend = () => undefined;
    host.pause = false;
    await engine.run(host, never);
    expect(host.status).toBe('finished');
  });

  it('kills background jobs with the engine', async () => {
    const host = await run(
      inOrder(call('terminal', { command: 'sleep 1000 & setsid sleep 1000 & echo $! > pid' }), say('done')),
    );
    expect(host.status).toBe('finished');
    const pid = Number(await readFile(folder('pid'), 'utf8'));
    expect(await processLives(pid)).toBe(true);
    await engine.close();
    expect(await processLives(pid)).toBe(false);
  });
});

describe('settings', () => {
  it('reach the system prompt', async () => {
    const host = await run(inOrder(say('fertig')), { language: 'de', systemPromptSuffix: 'Use tabs.' });
    const [prompt] = host.ofKind('SystemPromptEvent');
    expect(prompt?.dynamic_context?.text).toContain('German (de)');
    expect(llm.requests[0]?.messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('Use tabs.'),
    });
    expect(prompt?.tools.map(({ title }) => title)).toEqual(llm.requests[0]?.tools);
  });

  it('apply when they changed since the system prompt was written, also to a condensation', async () => {
    const host = await run(readingAgain, { condenserTokens: 6_000, language: 'de' });
    host.settings = { ...host.settings, language: 'fr' };
    await host.say('Encore.');
    llm.script = inOrder(say('fini'));
    await engine.run(host, never);
    expect(host.ofKind('SystemPromptEvent').map((event) => event.dynamic_context?.text)).toEqual([
      expect.stringContaining('German (de)'),
      expect.stringContaining('French (fr)'),
    ]);
    const [system, ...others] = llm.requests.at(-1)?.messages ?? [];
    expect(system?.content).toContain('French (fr)');
    expect(JSON.stringify([system, ...others])).not.toContain('German (de)');
    await engine.condense(host, never);
    await host.say('Et maintenant?');
    await engine.run(host, never);
    expect(host.ofKind('SystemPromptEvent')).toHaveLength(2);
    expect(llm.requests.at(-1)?.messages[0]?.content).toContain('French (fr)');
  });
});

describe('a question beside the work', () => {
  it('is answered from the history and leaves only its usage', async () => {
    const host = await run(inOrder(call('think', { thought: 'a secret plan' }), say('done')));
    const before = [...host.log];
    llm.script = ({ text }) => say(text.includes('a secret plan') ? 'The plan.' : 'I know nothing.');
    expect(await engine.ask(host, 'What is the plan?', never)).toBe('The plan.');
    expect(host.log).toEqual(before);
    expect(host.usage.map(({ isStep }) => isStep)).toEqual([true, true, false]);
    const asked = llm.requests.at(-1);
    expect(asked?.messages.at(-1)).toMatchObject({
      role: 'user',
      content: expect.stringContaining('What is the plan?'),
    });
    // A history with calls needs the tools, but the model must not call them.
    expect(asked?.tools).toContain('think');
    expect(asked?.toolChoice).toBe('none');
  });

  it('says why there is no answer', async () => {
    const host = await run(inOrder(fails(401, 'no such key')));
    await expect(engine.ask(host, '?', never)).rejects.toThrow(/401: no such key/);
    llm.script = inOrder(call('think', { thought: 'x' }));
    await expect(engine.ask(host, '?', never)).rejects.toThrow(/contained a tool call/);
    host.settings = { ...host.settings, maxBudget: 1 };
    const tokens = { promptTokens: 0, completionTokens: 0 };
    host.usage.push({ ...tokens, costUsd: 2, costSource: 'catalogue', isStep: true });
    await expect(engine.ask(host, '?', never)).rejects.toThrow(/max_budget_per_task/);
  });
});

describe('condensing', () => {
  it('happens on request, however short the history is', async () => {
    const host = await run(({ index, text }) => {
      if (isCondensation(text)) {
        return say('SUMMARY');
      }
      return index < 6 ? call('think', { thought: `thought ${index} ${'x'.repeat(200)}` }) : say('done');
    });
    const usage = host.usage.length;
    expect(await engine.condense(host, never)).toBe(true);
    expect(host.ofKind('Condensation')).toHaveLength(1);
    expect(host.usage.slice(usage)).toMatchObject([{ isStep: false }]);
    expect(host.status).toBe('finished');
  });

  it('replaces the oldest part with a summary, permanently', async () => {
    await writeFile(folder('long.txt'), 'x'.repeat(6_000));
    const host = await run(readingAgain, { condenserTokens: 6_000 });
    expect(host.status).toBe('finished');
    const [condensation] = host.ofKind('Condensation');
    expect(condensation).toMatchObject({
      source: 'environment',
      summary: 'SUMMARY: looked at long.txt',
      summary_offset: 2,
    });
    const last = llm.requests.at(-1);
    expect(last?.text).toContain('SUMMARY: looked at long.txt');
    expect(last?.text).toContain('Please do it.');
    expect(last?.text).not.toContain('cat long.txt # 0');
  });

  it('makes room when the provider reports a full context', async () => {
    const host = await run(fullContext, { condenserTokens: 1_000_000 });
    expect(host.ofKind('Condensation')).toHaveLength(1);
    expectDone(host);
    expect(llm.requests.at(-1)?.text).toContain('SUMMARY');
  });
});

function isCondensation(text: string): boolean {
  return text.includes('You condense the earlier part');
}

/** A model whose context is full at the seventh request. */
function fullContext({ index, text }: ChatRequest) {
  if (isCondensation(text)) {
    return say('SUMMARY');
  }
  if (index === 6) {
    return fails(400, "This model's maximum context length is 8192 tokens.");
  }
  return index < 6 ? call('think', { thought: `step ${index}` }) : say('done');
}

/** A model that reads a long file seven times. */
function readingAgain({ index, messages, text }: ChatRequest) {
  if (isCondensation(text)) {
    return say('SUMMARY: looked at long.txt');
  }
  return messages.length > 0 && index < 7
    ? call('terminal', { command: `cat long.txt # ${index}` })
    : say('done');
}
