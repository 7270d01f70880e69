import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../../../test/support/until.js';
import { McpToolbox } from '../../src/tools/mcp/mcp-toolbox.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import type { ChatRequest } from '../fakes/scripted-llm.js';
import { codesOf, detailsOf, nativeAgent, scriptedProgram } from './native-agent.js';

// obot-platform/obot#6185, github/copilot-cli#4421: npx and uvx download first, and are killed and begun anew each time.

const agent = nativeAgent();
let gate = '';
let tests = 0;

beforeEach(() => {
  agent.slowAfterMs = 1;
  tests += 1;
  gate = join(agent.folder, `gate-${tests}`);
});

afterEach(async () => {
  await agent.forget();
});

const slow = () => ({
  maxIterations: 100_000,
  mcpConfig: { near: scriptedProgram('starts slowly', { GATE: gate }) },
});
/** Thinks until the tool is there. */
const actWhenPossible = async ({ tools, messages, index }: ChatRequest) => {
  await until(() => existsSync(`${gate}.listed`));
  return messages.some(({ tool_calls: made }) => made?.[0]?.function.name === 'act')
    ? say('Done.')
    : tools.includes('act')
      ? call('act', {})
      : call('think', { thought: `${index}` });
};

it('does not hold up the work: its tools come when they are there', async () => {
  const host = await agent.run(async (request) => {
    await (request.index === 0 ? writeFile(gate, '') : undefined);
    return await actWhenPossible(request);
  }, slow());
  expect(host.status).toBe('finished');
  expect(agent.llm.requests[0]?.tools).not.toContain('act');
  expect(codesOf(host)).toEqual(['ToolServerStarting', 'ToolServerReady']);
  expect(detailsOf(host)[0]).toContain('near');
  expect(host.ofKind('ObservationEvent').at(-1)).toMatchObject({ tool_name: 'act' });
});

it('is not begun anew with the next message', async () => {
  const host = await agent.run(() => say('Hello.'), slow());
  expect(host.status).toBe('finished');
  await agent.goOn(host, 'And now?');
  expect(codesOf(host)).toEqual(['ToolServerStarting']);
  await writeFile(gate, '');
  agent.llm.script = actWhenPossible;
  await agent.goOn(host, 'Act.');
  expect(codesOf(host)).toEqual(['ToolServerStarting', 'ToolServerReady']);
  expect(await readFile(`${gate}.starts`, 'utf8')).toBe('x');
});

it('has a limit of its own, and ends with the conversation', async () => {
  const toolbox = new McpToolbox();
  const options = {
    workingDir: '/',
    environment: { PATH: process.env['PATH'] ?? '' },
    wrapper: [],
    checkUrl: async () => null,
    connectTimeoutMs: 300_000,
  };
  const signal = new AbortController().signal;
  const program = { command: 'sh', args: ['-c', 'exec sleep 1000'] };
  const limited = { near: { ...program, start_timeout_seconds: 0.05 } };
  expect(await toolbox.connect(limited, options, signal)).toMatchObject([
    { code: 'McpServerUnavailable', detail: expect.stringContaining('no response within 0.05 s') },
  ]);
  expect(await toolbox.connect({ near: program }, { ...options, slowAfterMs: 1 }, signal)).toMatchObject([
    { code: 'ToolServerStarting' },
  ]);
  await toolbox.close();
  expect(await toolbox.connect({}, options, signal)).toEqual([]);
});
