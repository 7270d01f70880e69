import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { jsonAt } from '@slipway/common/json-access.js';
import {
  AgentServerClient,
  CREDENTIALS,
  SESSION_KEY,
} from '../../packages/agent-server/test/support/agent-server-client.js';
import { reservedPort } from '../support/reserved-port.js';
import { inheritedEnvironment } from '../support/service-process.js';
import { until } from '../support/until.js';

const ENTRY = fileURLToPath(new URL('../fakes/fake-agent-server.ts', import.meta.url));
const LOADER = fileURLToPath(new URL('../../scripts/lib/typescript-loader.cjs', import.meta.url));

const KEY_LINE = `${JSON.stringify({ session_api_key: SESSION_KEY })}\n`;

describe('the process of the agent server', () => {
  let folder: string;
  let child: ChildProcess;

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'agent-server-process-'));
  });

  afterEach(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  async function start(): Promise<AgentServerClient> {
    const client = await startUnassigned('inherit');
    child.stdin?.end(KEY_LINE);
    await until(async () => (await isReady(client)) || child.exitCode !== null);
    return client;
  }

  /** Starts it and does not write its key. */
  async function startUnassigned(stderr: 'inherit' | 'pipe' | number): Promise<AgentServerClient> {
    const port = await reservedPort();
    const args = ['--port', String(port), '--workspace', path.join(folder, 'work'), '--secrets-stdin'];
    child = spawn(process.execPath, ['--require', LOADER, ENTRY, ...args], {
      env: inheritedEnvironment(),
      stdio: ['pipe', 'inherit', stderr],
    });
    return new AgentServerClient(port);
  }

  /** Starts it, and waits until it waits for its key. */
  async function startWaiting(): Promise<AgentServerClient> {
    const client = await startUnassigned('inherit');
    await until(async () => (await alive(client)) !== null || child.exitCode !== null);
    return client;
  }

  it('works on when nothing can be logged, as on a full disk', async () => {
    const full = openSync('/dev/full', 'w');
    const client = await startUnassigned(full);
    closeSync(full);
    child.stdin?.end(KEY_LINE);
    await until(async () => (await isReady(client)) || child.exitCode !== null);

    expect(await client.start()).toEqual(expect.any(String));
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('loses nothing when it is killed: what is open is closed, what is asked stays asked', async () => {
    const first = await start();
    const id = await first.start();
    await first.say(id, 'call x');
    await until(async () => (await first.kinds(id)).includes('ActionEvent'));
    const asking = await first.start();
    await first.say(asking, 'ask x');
    await first.untilStatus(asking, 'waiting_for_confirmation');
    const long = await first.start();
    await first.say(long, 'say long');
    await first.untilStatus(long, 'finished');
    const condensing = Promise.allSettled([first.post(`/api/conversations/${long}/condense`)]);
    await first.untilStatus(long, 'running');
    const before = await first.events(id);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await condensing).toMatchObject([{ status: 'rejected' }]);
    const log = path.join(folder, 'work/conversations', id.replaceAll('-', ''), 'events.jsonl');
    await appendFile(log, '{"kind":"MessageEvent","id":"half');

    const second = await start();
    expect(await second.get(`/api/conversations/${id}`)).toMatchObject({
      execution_status: 'paused',
      agent_state: { was_running: true },
    });
    const after = await second.events(id);
    expect(after.slice(0, before.length)).toEqual(before);
    expect(after.slice(before.length)).toMatchObject([
      { kind: 'AgentErrorEvent', tool_name: 'think', error: expect.stringContaining('interrupted') },
      { kind: 'ConversationStateUpdateEvent', key: 'execution_status', value: 'paused' },
    ]);
    expect(await second.say(id, 'say hello')).toMatchObject({ status: 400 });
    await second.post(`/api/conversations/${id}/credentials`, CREDENTIALS);
    await second.say(id, 'say hello');
    await second.untilStatus(id, 'finished');
    expect(await second.status(long)).toBe('finished');
    for (const over of [id, long]) {
      expect(jsonAt(await second.get(`/api/conversations/${over}`), 'agent_state')).toEqual({});
    }
    expect(await second.status(asking)).toBe('waiting_for_confirmation');
    await second.post(`/api/conversations/${asking}/credentials`, CREDENTIALS);
    await second.post(`/api/conversations/${asking}/events/respond_to_confirmation`, { accept: true });
    await second.untilStatus(asking, 'finished');
  });

  it('checkpoints and ends when it is asked to', async () => {
    const first = await start();
    const id = await first.start();
    await first.say(id, 'step');
    await first.untilStatus(id, 'running');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    const second = await start();
    expect(await second.get(`/api/conversations/${id}`)).toMatchObject({
      execution_status: 'paused',
      agent_state: { was_running: true },
    });
  });

  it('serves nobody until its key arrives on standard input', async () => {
    const client = await startWaiting();
    expect(await alive(client)).toEqual({ status: 'ok', assigned: false });
    expect(await client.send('GET', '/api/conversations/search')).toMatchObject({
      status: 503,
      body: { detail: expect.stringContaining('session key') },
    });
    child.stdin?.write(KEY_LINE.slice(0, 10));
    expect(await alive(client)).toEqual({ status: 'ok', assigned: false });
    // The input stays open, as that of a container does.
    child.stdin?.write(KEY_LINE.slice(10));
    await until(async () => jsonAt(await alive(client), 'assigned') === true);
    expect((await client.send('GET', '/api/conversations/search')).status).toBe(200);
    expect((await fetch(`${client.url}/api/conversations/search`)).status).toBe(401);
  });

  it('stops when it is asked to while it waits for its key', async () => {
    await startWaiting();
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });

  it('ends with the reason when standard input brings something else', async () => {
    await startUnassigned('pipe');
    // It may end before it has read everything.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end('GET / HTTP/1.1\r\n');
    let printed = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(printed).toMatch(/standard input must begin with a line of JSON that has a session_api_key/);
  });
});

/** The body of `/alive`; null when it does not answer. */
async function alive(client: AgentServerClient): Promise<unknown> {
  return await client.get('/alive').catch(() => null);
}

async function isReady(client: AgentServerClient): Promise<boolean> {
  const { status } = await client.send('GET', '/ready').catch(() => ({ status: 0 }));
  return status === 200;
}
