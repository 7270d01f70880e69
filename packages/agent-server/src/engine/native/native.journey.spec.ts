import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { engineSettings, MemoryEngineHost } from '../../../test/fakes/memory-engine-host.js';
import { RemoteMcpServer } from '../../../test/fakes/mcp-servers/remote-mcp-server.js';
import { call, say } from '../../../test/fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder, ScriptedLlm } from '../../../test/fakes/scripted-llm.js';
import { NativeEngine } from './native.engine.js';

let folder: string;
let llm: ScriptedLlm;
let engine: NativeEngine;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'journey-'));
  llm = await ScriptedLlm.start(inOrder(say('done')));
  engine = new NativeEngine();
});

afterEach(async () => {
  await engine.close();
  await llm.close();
  rmSync(folder, { recursive: true, force: true });
});

const never = new AbortController().signal;
const TEST = 'node --test --test-reporter=tap';

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: folder, encoding: 'utf8' });
}

/** Fixes a wrong operator: reads, edits, tests, commits; each step depends on the result of the last one. */
function fixingScript({ messages }: ChatRequest) {
  const results = messages
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => JSON.stringify(content));
  const last = results.at(-1) ?? '';
  switch (results.length) {
    case 0:
      return call('terminal', { command: TEST }, { text: 'Let me see the tests fail.' });
    case 1:
      return last.includes('not ok')
        ? call('file_editor', { command: 'view', path: 'add.js' })
        : say('The tests do not fail.');
    case 2:
      return call('file_editor', {
        command: 'str_replace',
        path: 'add.js',
        old_str: 'a - b',
        new_str: 'a + b',
      });
    case 3:
      return call('terminal', { command: TEST });
    case 4:
      return last.includes('# fail 0')
        ? call('terminal', {
            command: 'git commit -aqm "fix: add instead of subtracting" && git log --oneline',
          })
        : say('It still fails.');
    default:
      return call('finish', { message: 'Fixed: add subtracted.' });
  }
}

describe('a journey', () => {
  it('fixes a failing test and commits, and a new engine knows about it', async () => {
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(join(folder, 'add.js'), 'export const add = (a, b) => a - b;\n');
    writeFileSync(
      join(folder, 'add.test.js'),
      "import test from 'node:test';\nimport assert from 'node:assert';\nimport { add } from './add.js';\n" +
        "test('adds', () => assert.equal(add(1, 2), 3));\n",
    );
    git('init', '-q');
    git('config', 'user.name', 'Agent');
    git('config', 'user.email', 'agent@example.com');
    git('add', '.');
    git('commit', '-qm', 'start');
    llm.script = fixingScript;
    const host = new MemoryEngineHost(engineSettings(folder, llm.url));
    host.secrets = { PATH: `${resolve(process.execPath, '..')}:${process.env['PATH'] ?? ''}` };
    await host.say('The test fails. Fix it and commit.');
    await engine.run(host, never);
    expect(host.status).toBe('finished');
    expect(git('log', '-1', '--format=%s %an')).toBe('fix: add instead of subtracting Agent\n');
    expect(git('status', '--porcelain')).toBe('');
    expect(host.ofKind('ActionEvent').at(-1)?.action).toEqual({
      kind: 'FinishAction',
      message: 'Fixed: add subtracted.',
    });

    llm.script = ({ text }) => say(text.includes('fix: add instead') ? 'I remember.' : 'I forgot.');
    await host.say('What did you do?');
    const fresh = new NativeEngine();
    await fresh.run(host, never);
    await fresh.close();
    expect(host.ofKind('MessageEvent').at(-1)?.llm_message.content).toEqual([
      { type: 'text', text: 'I remember.' },
    ]);
  });

  it('calls no server that the operator does not allow', async () => {
    const remote = await RemoteMcpServer.start();
    const settings = engineSettings(folder, llm.url, {
      mcpConfig: { calculator: { url: remote.httpUrl, transport: 'http' } },
      outboundAllowlist: [new URL(llm.url).origin],
    });
    const host = new MemoryEngineHost(settings);
    await host.say('Add 20 and 22.');
    await engine.run(host, never);
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      { code: 'McpServerUnavailable', detail: expect.stringContaining('OUTBOUND_ALLOWLIST') },
    ]);
    expect(host.status).toBe('finished');
    host.settings = { ...settings, outboundAllowlist: ['llm.example.com'] };
    await host.say('Again.');
    await engine.run(host, never);
    await remote.close();
    expect(host.ofKind('ConversationErrorEvent').at(-1)).toMatchObject({
      code: 'LlmNotConfigured',
      detail: expect.stringContaining('llm_base_url: This server may not be used'),
    });
    expect(llm.requests).toHaveLength(1);
  });

  it('uses tool servers, and continues without those that fail', async () => {
    const remote = await RemoteMcpServer.start();
    llm.script = inOrder(call('add', { a: 20, b: 22 }), say('It is 42.'));
    const host = new MemoryEngineHost(
      engineSettings(folder, llm.url, {
        mcpConfig: {
          calculator: { url: remote.httpUrl, transport: 'http' },
          dead: { command: 'no-such-program-anywhere' },
        },
      }),
    );
    await host.say('Add 20 and 22.');
    await engine.run(host, never);
    await engine.close();
    await remote.close();
    expect(host.status).toBe('finished');
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      {
        code: 'McpServerUnavailable',
        detail: expect.stringContaining('The tool server dead (no-such-program-anywhere) cannot be used'),
      },
    ]);
    expect(host.ofKind('ActionEvent')[0]?.action).toEqual({ kind: 'MCPToolAction', data: { a: 20, b: 22 } });
    expect(host.ofKind('ObservationEvent')[0]?.observation).toMatchObject({
      kind: 'MCPToolObservation',
      tool_name: 'add',
      content: [{ type: 'text', text: '42' }],
    });
    expect(llm.requests[1]?.messages.at(-1)?.content).toBe('42');
  });
});
