// Records the code caches of the agent server's bundle: runs it through the start of a conversation and a few steps of the
// agent, and keeps what V8 has compiled by then (docs/adr/0048).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';

await import('./lib/typescript-loader.cjs');
// V8 takes a cache only for the flags that it was recorded with.
const { AGENT_SERVER_FLAGS } = await import('../packages/sandboxes/src/launch-variables.ts');

const ENTRY = fileURLToPath(new URL('../dist/bundle/agent-server/main.js', import.meta.url));
const RECORDER = fileURLToPath(new URL('lib/record-code-cache.cjs', import.meta.url));
const SESSION_KEY = 'key-of-the-build';
const POLL_MS = 10;
const TIMEOUT_MS = 60_000;

/** What the model says, one answer after the other. */
const ANSWERS = [
  call('terminal', { command: 'echo one' }),
  call('file_editor', { command: 'create', path: 'note.txt', file_text: 'one\n' }),
  call('task_tracker', { command: 'view' }),
  { content: 'It is done.' },
];

const folder = mkdtempSync(path.join(tmpdir(), 'slipway-code-cache-'));
const socketPath = path.join(folder, 'agent.sock');
const workspace = path.join(folder, 'work');
const deadline = performance.now() + TIMEOUT_MS;
const model = await scriptedModel();
const server = startAgentServer();
const log = text(server.stderr);
try {
  await until(async () => (await get('/alive').catch(() => null))?.assigned === true);
  await converse();
  server.kill('SIGTERM');
  await once(server, 'exit');
  if (server.exitCode !== 0) {
    throw new Error(`the agent server ended with ${server.exitCode ?? server.signalCode}`);
  }
} catch (error) {
  server.kill('SIGKILL');
  process.stderr.write(`failed to record the code caches\n${await log}`);
  throw error;
} finally {
  model.close();
  rmSync(folder, { recursive: true, force: true });
}

function startAgentServer() {
  const flags = [...AGENT_SERVER_FLAGS, '--require', RECORDER];
  const options = ['--socket', socketPath, '--workspace', workspace, '--secrets-stdin'];
  const child = spawn(process.execPath, [...flags, ENTRY, ...options], {
    env: { PATH: process.env.PATH, HOME: folder },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  child.stdin.end(`${JSON.stringify({ session_api_key: SESSION_KEY })}\n`);
  return child;
}

/** What the service asks of an agent server, from the start of a conversation to its end. */
async function converse() {
  await post('/api/bash/execute_bash_command', { command: 'pwd -P', timeout: 60 });
  await post('/api/skills', { load_user: true, load_project: true, project_dir: workspace });
  const { id } = await post('/api/conversations', {
    agent: {
      kind: 'Agent',
      llm: {
        model: 'openai/scripted',
        api_key: 'key',
        base_url: `http://127.0.0.1:${model.address().port}/v1`,
      },
      tools: [{ name: 'terminal' }, { name: 'file_editor' }, { name: 'task_tracker' }],
      condenser: { kind: 'LLMSummarizingCondenser', max_tokens: 96_000 },
      agent_context: { load_project_skills: true },
    },
    workspace: { kind: 'LocalWorkspace', working_dir: workspace },
    confirmation_policy: { kind: 'NeverConfirm' },
    initial_message: { role: 'user', content: [{ type: 'text', text: 'Begin.' }], run: true },
  });
  const events = new WebSocket(`ws+unix:${socketPath}:/sockets/events/${id}?frames=linked`, {
    headers: { 'X-Session-API-Key': SESSION_KEY },
  });
  await once(events, 'message');
  await until(async () => {
    const { execution_status: status } = await get(`/api/conversations/${id}`);
    if (status === 'error') {
      throw new Error(JSON.stringify(await get(`/api/conversations/${id}/events/search`)));
    }
    return status === 'finished';
  });
  await get(`/api/conversations/${id}/events/search?limit=100`);
  events.terminate();
}

async function get(address) {
  return await request('GET', address);
}

async function post(address, body) {
  return await request('POST', address, body);
}

async function request(method, address, body) {
  const headers = { 'X-Session-API-Key': SESSION_KEY, 'Content-Type': 'application/json' };
  const sent = http.request({ socketPath, method, path: address, headers });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await once(sent, 'response');
  const answer = await text(response);
  if (response.statusCode >= 300) {
    throw new Error(`${method} ${address}: ${response.statusCode} ${answer}`);
  }
  return JSON.parse(answer);
}

async function until(isTrue) {
  while (!(await isTrue())) {
    if (server.exitCode !== null || performance.now() > deadline) {
      throw new Error('the agent server did not finish a conversation');
    }
    await delay(POLL_MS);
  }
}

function call(name, args) {
  return {
    tool_calls: [
      { index: 0, id: name, type: 'function', function: { name, arguments: JSON.stringify(args) } },
    ],
  };
}

/** An OpenAI-compatible model on this machine. */
async function scriptedModel() {
  const answers = ANSWERS.values();
  const listening = http.createServer((incoming, response) => {
    incoming.resume();
    const delta = { role: 'assistant', ...(answers.next().value ?? ANSWERS.at(-1)) };
    const usage = { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 };
    const finish = { index: 0, delta: {}, finish_reason: 'tool_calls' in delta ? 'tool_calls' : 'stop' };
    const lines = [chunk({ index: 0, delta }), { ...chunk(finish), usage }].map(
      (each) => `data: ${JSON.stringify(each)}\n\n`,
    );
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.end(`${lines.join('')}data: [DONE]\n\n`);
  });
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return listening;
}

function chunk(choice) {
  return { id: '1', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [choice] };
}
