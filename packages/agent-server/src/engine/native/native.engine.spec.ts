import { describe, expect, it } from '@jest/globals';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { MemoryEngineHost } from '../../../test/fakes/memory-engine-host.js';
import { RemoteMcpServer } from '../../../test/fakes/mcp-servers/remote-mcp-server.js';
import { call, calls, fails, say } from '../../../test/fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder } from '../../../test/fakes/scripted-llm.js';
import { answersOf, codesOf, expectTold, nativeAgent, resultsOf } from '../../../test/field/native-agent.js';
import { actionEvent } from '../../../../../test/fakes/sample-events.js';
import { processLives } from '../../../../../test/support/process-lives.js';

const agent = nativeAgent();
const never = new AbortController().signal;

describe('a run', () => {
  it('shows answers while they are written, with thoughts apart, and takes back those that break off', async () => {
    const whole = '<think>So be it.</think>It is done.';
    const host = await agent.run(inOrder({ kind: 'cut', text: 'It is al' }, { kind: 'answer', text: whole }));
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
    expect(agent.pauses).toEqual([2_000]);
    expect(answersOf(host)).toEqual(['It is done.']);
  });

  it('shows what it finishes with while that is written, behind what it has said', async () => {
    const message = 'It says "done" \u00e4\n\\ and more.';
    const whole = `Well.\n\n${message}`;
    const host = await agent.run(inOrder(call('finish', { message }, { text: 'Well.' })));
    const shown = host.drafts.map((draft) => draft?.text ?? '');
    expect(shown.filter((text) => !whole.startsWith(text))).toEqual([]);
    expect(shown.at(-1)).toBe(whole);
    expect(new Set(shown.map((text) => text.length)).size).toBeGreaterThan(3);
    const other = await agent.run(inOrder(call('think', { thought: 'x', message: 'No.' }), say('Done.')));
    expect(JSON.stringify(other.drafts)).not.toContain('No.');
  });

  it('ends with a message', async () => {
    const host = await agent.run(inOrder(say('All is well.')), { systemPromptSuffix: 'Use tabs.' });
    expect(host.status).toBe('finished');
    expect(host.log.map(({ kind }) => kind)).toEqual(['MessageEvent', 'SystemPromptEvent', 'MessageEvent']);
    expect(agent.llm.requests[0]?.messages[0]?.content).toContain('Use tabs.');
    expect(host.ofKind('SystemPromptEvent')[0]?.tools.map(({ title }) => title)).toEqual(
      agent.llm.requests[0]?.tools,
    );
    expect(host.log[2]).toMatchObject({
      source: 'agent',
      llm_message: { role: 'assistant', content: [{ type: 'text', text: 'All is well.' }] },
    });
    const tokens = { promptTokens: expect.any(Number), completionTokens: expect.any(Number) };
    expect(host.usage).toEqual([{ ...tokens, costUsd: null, costSource: 'unknown', isStep: true }]);
    expect(agent.llm.requests[0]).toMatchObject({
      model: 'scripted',
      tools: ['terminal', 'file_editor', 'task_tracker', 'think', 'finish'],
    });
    expect(agent.llm.requests[0]?.headers['authorization']).toBe('Bearer key-of-the-model');
  });

  it('logs a call before it runs and its result after it, and shows the model both', async () => {
    const host = await agent.run(
      inOrder(
        call('terminal', { command: 'echo one; exit 3' }, { text: 'Let me look.' }),
        call('finish', { message: 'Done.' }),
      ),
    );
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
    const history = agent.llm.requests[1]?.messages ?? [];
    expect(history.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool']);
    expect(history[2]?.tool_calls?.[0]?.function).toEqual({
      name: 'terminal',
      arguments: JSON.stringify({ command: 'echo one; exit 3' }),
    });
    expect(history[3]?.content).toContain('one');
  });

  it('does not run calls after finish', async () => {
    const late = { name: 'terminal', arguments: { command: 'touch late' } };
    const host = await agent.run(inOrder(calls({ name: 'finish', arguments: { message: 'Done.' } }, late)));
    expect(host.status).toBe('finished');
    expect(host.ofKind('AgentErrorEvent')).toMatchObject([
      { error: 'Not run: an earlier call ended the work.' },
    ]);
  });

  it('continues when the user wrote while the model responded', async () => {
    const host = await agent.run(inOrder(say('Well.')));
    agent.llm.script = async ({ index }) => {
      await (index === 1 ? host.say('And another thing.') : undefined);
      return say(`answer ${index}`);
    };
    await agent.goOn(host, 'Go on.');
    expect(agent.llm.requests).toHaveLength(3);
    expect(agent.llm.requests[2]?.text).toContain('And another thing.');
    expect(host.status).toBe('finished');
  });

  it('continues from a log that breaks off in a call', async () => {
    const host = await agent.run(inOrder(say('Seen.')));
    host.log.push(actionEvent('lost', 'r1'));
    await agent.goOn(host);
    expect(host.ofKind('AgentErrorEvent')).toMatchObject([{ tool_call_id: 'lost' }]);
    expect(agent.llm.requests.at(-1)?.messages.at(-1)).toMatchObject({ role: 'tool', tool_call_id: 'lost' });
    expect(host.status).toBe('finished');
  });

  it('stops after the same call with the same result four times', async () => {
    const host = await agent.run(inOrder(call('terminal', { command: 'echo same' })));
    expectTold(host, 'AgentStuck', 'same', 'stuck');
    expect(agent.llm.requests).toHaveLength(4);
    const settings = { stuckDetection: false, maxIterations: 6 };
    const other = await agent.run(inOrder(call('terminal', { command: 'echo same' })), settings);
    expect(codesOf(other)).toEqual(['MaxIterationsReached']);
  });
});

describe('limits', () => {
  it('makes exactly the allowed number of steps, and starts a new count with each message', async () => {
    const host = await agent.run(({ index }) => call('think', { thought: `step ${index}` }), {
      maxIterations: 3,
    });
    expect(agent.llm.requests).toHaveLength(3);
    expectTold(host, 'MaxIterationsReached');
    expect(host.ofKind('ObservationEvent')).toHaveLength(3);
    agent.llm.script = () => say('done');
    await agent.goOn(host, 'Go on.');
    expect(host.status).toBe('finished');
  });

  it('stops after the step that reaches the budget', async () => {
    const usage = { promptTokens: 1_000, completionTokens: 500 };
    const host = await agent.run(({ index }) => call('think', { thought: `step ${index}` }, { usage }), {
      maxBudget: 0.04,
      modelPrices: { scripted: { input: 10, output: 20 } },
    });
    expect(host.usage.map(({ costUsd }) => costUsd)).toEqual([0.02, 0.02]);
    expectTold(host, 'MaxBudgetReached');
    expect(host.ofKind('ObservationEvent')).toHaveLength(2);
  });

  it('reports once that a budget is not enforced when the price is unknown', async () => {
    const think = call('think', { thought: 'a' });
    const host = await agent.run(inOrder(think, think, say('done')), { maxBudget: 1 });
    expectTold(host, 'BudgetNotEnforced', '', 'finished');
  });
});

describe('a model that fails', () => {
  it('is retried for a minute after 500, and each time is told', async () => {
    const host = await agent.run(inOrder(fails(500, 'The engine is on fire')));
    expect(agent.llm.requests).toHaveLength(6);
    expect(agent.pauses).toEqual([2_000, 4_000, 8_000, 16_000, 32_000]);
    expect(host.status).toBe('error');
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      ...agent.pauses.map((pause) => ({
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
    const host = await agent.run(inOrder(answer), { llmTimeoutMs: 300 });
    expect(agent.llm.requests).toHaveLength(1);
    expectTold(host, 'LlmTimeout', 'The model sent nothing for 0.3 s.');
  });
});

const risksOf = (host: MemoryEngineHost) =>
  host.ofKind('ActionEvent').map(({ security_risk }) => security_risk);

describe('confirmation', () => {
  it('does not ask for thinking and finishing', async () => {
    const host = await agent.run(
      inOrder(call('think', { thought: 'hm' }), call('finish', { message: 'bye' })),
      {
        confirmationPolicy: 'always',
      },
    );
    expect(host.status).toBe('finished');
  });

  it('asks the model for the risk and runs only low ones unconfirmed', async () => {
    const host = await agent.run(
      inOrder(
        call('terminal', { command: 'echo low', security_risk: 'LOW' }),
        call('terminal', { command: 'echo high', security_risk: 'HIGH' }),
        call('terminal', { command: 'echo unknown' }),
        say('done'),
      ),
      { confirmationPolicy: 'risky' },
    );
    expect(agent.llm.requests[0]?.toolSchemas['terminal']).toMatchObject({
      properties: { security_risk: { enum: ['LOW', 'MEDIUM', 'HIGH'] } },
      required: expect.arrayContaining(['command', 'security_risk']),
    });
    expect(agent.llm.requests[0]?.toolSchemas['finish']).not.toMatchObject({
      properties: { security_risk: expect.anything() },
    });
    expect(resultsOf(host)).toHaveLength(1);
    expect(host.status).toBe('waiting_for_confirmation');
    await agent.engine.confirm(host, null, never);
    expect(host.status).toBe('waiting_for_confirmation');
    expect(risksOf(host)).toEqual(['LOW', 'HIGH', 'UNKNOWN']);
    await agent.engine.confirm(host, null, never);
    expect(host.status).toBe('finished');
  });
});

it('analyzers of risks ask for what they find risky, whatever the model says', async () => {
  const analyzer = { kind: 'PolicyRailSecurityAnalyzer' } as const;
  const risk = { analyzer, threshold: 'HIGH' as const, confirmUnknown: true };
  const host = await agent.run(
    inOrder(
      call('terminal', { command: 'echo low' }),
      call('terminal', { command: 'echo "rm -rf /" | true' }),
      call('terminal', { command: 'true || rm -rf /', security_risk: 'LOW' }),
      say('done'),
    ),
    { confirmationPolicy: 'risky', risk },
  );
  expect(JSON.stringify(agent.llm.requests[0]?.toolSchemas['terminal'])).not.toContain('security_risk');
  expect(host.status).toBe('waiting_for_confirmation');
  expect(risksOf(host)).toEqual(['LOW', 'LOW', 'HIGH']);
  expect(resultsOf(host)).toHaveLength(2);
});

it('tool servers are not called where the operator does not allow it', async () => {
  const remote = await RemoteMcpServer.start();
  const host = await agent.run(inOrder(say('done')), {
    mcpConfig: { calculator: { url: remote.httpUrl, transport: 'http' } },
    outboundAllowlist: [new URL(agent.llm.url).origin],
  });
  expectTold(host, 'McpServerUnavailable', 'OUTBOUND_ALLOWLIST', 'finished');
  await remote.close();
  expect(remote.requests).toEqual([]);
});

it('kills background jobs with the engine', async () => {
  const host = await agent.run(
    inOrder(call('terminal', { command: 'sleep 1000 & setsid sleep 1000 & echo $! > pid' }), say('done')),
  );
  expect(host.status).toBe('finished');
  const pid = Number(await readFile(join(agent.folder, 'pid'), 'utf8'));
  expect(await processLives(pid)).toBe(true);
  await agent.forget();
  expect(await processLives(pid)).toBe(false);
});

it('settings apply when they changed since the system prompt was written, also to a condensation', async () => {
  const host = await agent.run(readingAgain, { condenserTokens: 6_000, language: 'de' });
  host.settings = { ...host.settings, language: 'fr' };
  agent.llm.script = inOrder(say('fini'));
  await agent.goOn(host, 'Encore.');
  expect(host.ofKind('SystemPromptEvent').map((event) => event.dynamic_context?.text)).toEqual([
    expect.stringContaining('German (de)'),
    expect.stringContaining('French (fr)'),
  ]);
  const [system, ...others] = agent.llm.requests.at(-1)?.messages ?? [];
  expect(system?.content).toContain('French (fr)');
  expect(JSON.stringify([system, ...others])).not.toContain('German (de)');
  await agent.engine.condense(host, never);
  await agent.goOn(host, 'Et maintenant?');
  expect(host.ofKind('SystemPromptEvent')).toHaveLength(2);
  expect(agent.llm.requests.at(-1)?.messages[0]?.content).toContain('French (fr)');
});

describe('a question beside the work', () => {
  it('is answered from the history and leaves only its usage', async () => {
    const host = await agent.run(inOrder(call('think', { thought: 'a secret plan' }), say('done')));
    const before = [...host.log];
    agent.llm.script = ({ text }) => say(text.includes('a secret plan') ? 'The plan.' : 'I know nothing.');
    expect(await agent.ask(host, 'What is the plan?')).toBe('The plan.');
    expect(host.log).toEqual(before);
    expect(host.usage.map(({ isStep }) => isStep)).toEqual([true, true, false]);
    const asked = agent.llm.requests.at(-1);
    expect(asked?.messages.at(-1)).toMatchObject({
      role: 'user',
      content: expect.stringContaining('What is the plan?'),
    });
    // A history with calls needs the tools, but the model must not call them.
    expect(asked?.tools).toContain('think');
    expect(asked?.toolChoice).toBe('none');
  });

  it('says why there is no answer', async () => {
    const host = await agent.run(inOrder(fails(401, 'no such key')));
    await expect(agent.ask(host, '?')).rejects.toThrow(/401: no such key/);
    agent.llm.script = inOrder(call('think', { thought: 'x' }));
    await expect(agent.ask(host, '?')).rejects.toThrow(/contained a tool call/);
    host.settings = { ...host.settings, maxBudget: 1 };
    const tokens = { promptTokens: 0, completionTokens: 0 };
    host.usage.push({ ...tokens, costUsd: 2, costSource: 'catalogue', isStep: true });
    await expect(agent.ask(host, '?')).rejects.toThrow(/max_budget_per_task/);
  });
});

describe('condensing', () => {
  it('happens on request, however short the history is', async () => {
    const host = await agent.run(({ index, text }) => {
      if (isCondensation(text)) {
        return say('SUMMARY');
      }
      return index < 6 ? call('think', { thought: `thought ${index} ${'x'.repeat(200)}` }) : say('done');
    });
    const usage = host.usage.length;
    expect(await agent.engine.condense(host, never)).toBe(true);
    expect(host.ofKind('Condensation')).toHaveLength(1);
    expect(host.usage.slice(usage)).toMatchObject([{ isStep: false }]);
    expect(host.status).toBe('finished');
  });

  it('replaces the oldest part with a summary, permanently', async () => {
    await writeFile(join(agent.folder, 'long.txt'), 'x'.repeat(6_000));
    const host = await agent.run(readingAgain, { condenserTokens: 6_000 });
    expect(host.status).toBe('finished');
    const [condensation] = host.ofKind('Condensation');
    expect(condensation).toMatchObject({
      source: 'environment',
      summary: 'SUMMARY: looked at long.txt',
      summary_offset: 2,
    });
    const last = agent.llm.requests.at(-1);
    expect(last?.text).toContain('SUMMARY: looked at long.txt');
    expect(last?.text).toContain('Please do it.');
    expect(last?.text).not.toContain('cat long.txt # 0');
  });
});

function isCondensation(text: string): boolean {
  return text.includes('You condense the earlier part');
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
