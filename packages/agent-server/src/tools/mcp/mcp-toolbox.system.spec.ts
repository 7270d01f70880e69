import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';
import { RemoteMcpServer } from '../../../test/fakes/mcp-servers/remote-mcp-server.js';
import { toolboxOptions } from '../../../test/fakes/mcp-servers/toolbox-options.js';
import { until } from '../../../../../test/support/until.js';
import type { Tool, ToolContext } from '../tool.js';
import { McpToolbox, type McpToolboxOptions } from './mcp-toolbox.js';
import { processLives } from '../../../../../test/support/process-lives.js';
import { temporaryFolder } from '../../../../../test/support/temporary-folder.js';

const STDIO_SERVER = resolve('packages/agent-server/test/fakes/mcp-servers/stdio-server.mjs');

const never = new AbortController().signal;

const folder = temporaryFolder();
let remote: RemoteMcpServer;
let toolbox: McpToolbox;

beforeEach(async () => {
  remote = await RemoteMcpServer.start();
  toolbox = new McpToolbox();
});

afterEach(async () => {
  await toolbox.close();
  await remote.close();
});

const options = (changes: Partial<McpToolboxOptions> = {}): McpToolboxOptions =>
  toolboxOptions({ workingDir: folder(), ...changes });

function stdio(env: Record<string, string> = {}): McpServers {
  return { local: { command: process.execPath, args: [STDIO_SERVER], env } };
}

function context(): ToolContext {
  return { workingDir: folder(), environment: {}, signal: new AbortController().signal };
}

function toolNamed(name: string): Tool {
  const tool = toolbox.tools(['think', 'finish']).find((candidate) => candidate.name === name);
  if (tool === undefined) {
    throw new Error(`no tool ${name}`);
  }
  return tool;
}

async function callTool(name: string, args: Record<string, unknown>) {
  return await toolNamed(name).prepare(args).run(context());
}

describe('tool servers', () => {
  it('work over standard streams, with the given environment only', async () => {
    expect(await toolbox.connect(stdio({ OWN: '1' }), options(), never)).toEqual([]);
    expect(await callTool('shout', { text: 'hi' })).toEqual({
      kind: 'MCPToolObservation',
      content: [{ type: 'text', text: 'HI' }],
      is_error: false,
      tool_name: 'shout',
    });
    const { content } = await callTool('environment', {});
    expect(content).toEqual([{ type: 'text', text: 'OWN PATH SLIPWAY_PROCESS_TREE' }]);
  });

  it('run behind the wrapper if they are child processes', async () => {
    expect(await toolbox.connect(stdio(), options({ wrapper: ['env', 'WRAPPED=1'] }), never)).toEqual([]);
    const { content } = await callTool('environment', {});
    expect(content).toEqual([{ type: 'text', text: 'PATH SLIPWAY_PROCESS_TREE WRAPPED' }]);
  });

  it.each(['http', 'sse'] as const)('work over %s, with their headers', async (transport) => {
    const url = transport === 'http' ? remote.httpUrl : remote.sseUrl;
    const servers = { far: { url, transport, headers: { 'x-key': 'k' } } };
    expect(await toolbox.connect(servers, options(), never)).toEqual([]);
    expect(await callTool('add', { a: 1, b: 2 })).toMatchObject({
      content: [{ text: '3' }],
      is_error: false,
    });
    expect(await callTool('refuse', {})).toMatchObject({ content: [{ text: 'no' }], is_error: true });
    expect(await callTool('picture', {})).toMatchObject({
      content: [{ type: 'image', image_urls: ['data:image/png;base64,iVBORw0KGgo='] }],
    });
    expect(remote.requests.every(({ headers }) => headers['x-key'] === 'k')).toBe(true);
  });

  it('prefix the name of a tool that is already used', async () => {
    await toolbox.connect({ far: { url: remote.httpUrl, transport: 'http' } }, options(), never);
    expect(await callTool('far_think', {})).toMatchObject({ content: [{ text: 'thought elsewhere' }] });
  });

  it('that write an endless line are ended instead of being kept in memory', async () => {
    const flood = { command: 'bash', args: ['-c', 'head -c 50000000 /dev/zero | tr "\\0" x; sleep 1000'] };
    const [failure] = await toolbox.connect({ flood }, options(), never);
    expect(failure?.detail).toContain('server flood (bash) cannot be used: it wrote a line that is too long');
  });

  it('end together with what they started', async () => {
    const pidFile = folder('pids');
    await toolbox.connect(stdio({ PID_FILE: pidFile }), options(), never);
    const pids = (await readFile(pidFile, 'utf8')).split(' ').map(Number);
    expect(pids).toHaveLength(2);
    await toolbox.close();
    await until(async () => !(await Promise.all(pids.map(processLives))).includes(true));
  });

  it('that do not begin are ended with the run that waits for them', async () => {
    const pidFile = folder('pid');
    const silent = { command: 'bash', args: ['-c', `echo $$ > ${pidFile}; exec sleep 1000`] };
    const aborter = new AbortController();
    const connecting = toolbox.connect({ silent }, options(), aborter.signal);
    const pid = async (): Promise<number> => Number(await readFile(pidFile, 'utf8').catch(() => ''));
    await until(async () => (await pid()) > 0);
    aborter.abort();
    expect(await connecting).toEqual([]);
    expect(await processLives(await pid())).toBe(false);
  });

  it('that are no longer configured are closed', async () => {
    await toolbox.connect(stdio(), options(), never);
    await toolbox.connect({}, options(), never);
    expect(toolbox.tools([])).toEqual([]);
  });
});
