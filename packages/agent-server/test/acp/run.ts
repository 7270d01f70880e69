// Holds conversations with real agents of the Agent Client Protocol against a scripted model: see scripts/test-acp.mjs.
// run.ts NAME FOLDER: the agent, and where its package is installed.
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { exitProcess } from '@slipway/common/processes/end-processes.js';
import { AcpEngine } from '../../src/engine/acp/acp.engine.js';
import type { EngineSettings } from '../../src/engine/agent-engine.js';
import { toolEnvironment } from '../../src/tool-view.js';
import { engineSettings, MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { OutsideHost } from '../../../../test/support/outside-host.js';
import { until } from '../../../../test/support/until.js';
import { REAL_AGENTS, type RealAgent } from './real-agents.js';

const STEP_TIMEOUT_MS = 90_000;
const never = new AbortController().signal;

interface Step {
  what: string;
  result: string;
  milliseconds: number;
}

const [name, installed = ''] = process.argv.slice(2);
const agent = REAL_AGENTS.find((known) => known.name === name);
if (agent === undefined) {
  throw new Error(`which agent? ${REAL_AGENTS.map((known) => known.name).join(', ')}`);
}
const steps = await converse(agent, installed);
for (const { what, result, milliseconds } of steps) {
  process.stdout.write(
    `${agent.name.padEnd(10)} ${what.padEnd(44)} ${String(Math.round(milliseconds)).padStart(7)} ms  ${result}\n`,
  );
}
exitProcess(steps.some(({ result }) => result.startsWith('FAILED')) ? 1 : 0);

async function converse(real: RealAgent, folder: string): Promise<Step[]> {
  const workspace = await realpath(await mkdtemp(path.join(tmpdir(), 'acp-workspace-')));
  const model = await real.startModel();
  const outside = await OutsideHost.start(model.url, real.key, workspace);
  const taken: Step[] = [];
  const settings = (changes: Partial<EngineSettings> = {}): EngineSettings =>
    engineSettings(workspace, 'http://127.0.0.1:9', {
      acp: {
        command: [path.join(folder, 'node_modules/.bin', real.command), ...real.args],
        environment: {
          ...outside.environment,
          ...real.environment(outside.url, outside.placeholder),
        },
        model: null,
        sessionMode: real.askingMode,
        authMethod: null,
        startTimeoutMs: STEP_TIMEOUT_MS,
        idleTimeoutMs: STEP_TIMEOUT_MS,
      },
      ...changes,
    });
  let engine = newEngine();
  const host = new MemoryEngineHost(settings());
  const step = async (what: string, work: () => Promise<string | null>): Promise<void> => {
    const begin = performance.now();
    let result: string;
    try {
      result = (await work()) ?? 'ok';
    } catch (error) {
      result = `FAILED: ${String(error)} ${JSON.stringify(host.ofKind('ConversationErrorEvent').at(-1)?.detail ?? '')}`;
    }
    taken.push({ what, result, milliseconds: performance.now() - begin });
  };
  const tell = async (text: string): Promise<string> => {
    await host.say(text);
    await engine.run(host, never);
    return lastAnswer(host);
  };
  await step('starts and says what it is', async () => {
    await engine.prepare(host);
    return `${host.details?.name} ${host.details?.version}, ${host.details?.models.length} models, load ${host.details?.capabilities.loadSession}`;
  });
  await step('answers a message', async () => expectText(await tell('[[say:first words]]'), 'first words'));
  await step('runs a tool, as events, allowed at once', async () => {
    expectText(await tell('[[run:echo made by the agent > made.txt]]'), 'ran ');
    expectText(await readFile(path.join(workspace, 'made.txt'), 'utf8'), 'made by the agent');
    return describeCalls(host, 'completed');
  });
  await step('asks, and is allowed', async () => {
    host.settings = settings({ confirmationPolicy: 'always' });
    await host.say('[[run:cp made.txt confirmed.txt]]');
    await engine.run(host, never);
    let asked = 0;
    while (host.status === 'waiting_for_confirmation') {
      asked += 1;
      await engine.confirm(host, null, never);
    }
    expectText(await readFile(path.join(workspace, 'confirmed.txt'), 'utf8'), 'made by the agent');
    return asked === 0 ? 'FAILED: it did not ask' : `asked ${asked}`;
  });
  await step('asks, and is refused', async () => {
    await host.say('[[run:cp made.txt refused.txt]]');
    await engine.run(host, never);
    expectText(host.status, 'waiting_for_confirmation');
    await engine.confirm(host, 'not that one', never);
    const isMade = await readFile(path.join(workspace, 'refused.txt')).then(
      () => true,
      () => false,
    );
    return isMade ? 'FAILED: it ran it' : describeCalls(host, 'failed');
  });
  await step('is paused while its model thinks', async () => {
    host.settings = settings();
    const aborter = new AbortController();
    await host.say('[[hang:]]');
    const running = engine.run(host, aborter.signal);
    const before = model.hanging();
    await until(() => model.hanging() > before || host.status === 'error');
    const begin = performance.now();
    aborter.abort();
    await running;
    expectText(host.status, 'paused');
    return `within ${Math.round(performance.now() - begin)} ms`;
  });
  await step('goes on after the pause', async () =>
    expectText(await tell('[[say:second words]]'), 'second words'),
  );
  await step('loads its session in another process', async () => {
    await engine.close();
    engine = newEngine();
    return expectText(await tell('[[recall:]]'), 'first words');
  });
  await step('tells what it used', async () => {
    const { costUsd } = host.totals();
    const tokens = host.usage.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
    return `${tokens} tokens, ${costUsd.toFixed(4)} USD`;
  });
  await step('had its key put in outside, and its calls counted', async () => {
    const { withKey, others } = outside.received;
    const { calls, tokens } = await outside.counted();
    const shown = `${withKey} requests, ${calls} calls, ${tokens} tokens`;
    return withKey > 0 && calls > 0 && others.length === 0
      ? shown
      : `FAILED: ${shown}, without: ${others.join()}`;
  });
  await engine.close();
  await outside.close();
  await model.close();
  await rm(workspace, { recursive: true, force: true, maxRetries: 10 });
  return taken;
}

function newEngine(): AcpEngine {
  return new AcpEngine({ environment: toolEnvironment(process.env), wrapper: [] });
}

function lastAnswer(host: MemoryEngineHost): string {
  const content = host.ofKind('MessageEvent').findLast(({ source }) => source === 'agent')
    ?.llm_message.content;
  return (content ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');
}

function expectText(text: string, part: string): null {
  if (!text.includes(part)) {
    throw new Error(`expected ${JSON.stringify(part)}, found ${JSON.stringify(text.slice(0, 300))}`);
  }
  return null;
}

function describeCalls(host: MemoryEngineHost, status: string): string {
  const last = host.ofKind('ACPToolCallEvent').at(-1);
  if (last?.status !== status) {
    throw new Error(
      `the last call is ${last?.status ?? 'missing'}: ${JSON.stringify(last ?? null).slice(0, 300)}`,
    );
  }
  return `${last.title.slice(0, 40)} (${last.tool_kind ?? 'no kind'}) ${last.status}`;
}
