import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonText } from '@slipway/common/json-access.js';
import {
  type ProcessHarness,
  processHarness,
} from '../../packages/sandboxes/src/process/process.sandbox-backend.harness.js';
import { createTestApp, type TestApp } from '../support/create-test-app.js';
import { say, StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';

/** An agent in a few lines: sandboxes see no files of the tests. It answers with what it sees. */
const AGENT = `
const { readdirSync, existsSync } = require('node:fs');
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    send({ id, result: { protocolVersion: 1, agentInfo: { name: 'tiny', version: '1' }, agentCapabilities: {} } });
  } else if (method === 'session/new') {
    send({ id, result: { sessionId: 'one' } });
  } else if (method === 'session/prompt') {
    const seen = {
      cwd: process.cwd(),
      named: process.env.NAMED_SECRET,
      other: process.env.OTHER_SECRET ?? null,
      key: process.env.MODEL_KEY,
      model: process.env.MODEL,
      processes: readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name)).length,
    };
    const update = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: JSON.stringify(seen) } };
    send({ method: 'session/update', params: { sessionId: params.sessionId, update } });
    send({ id, result: { stopReason: 'end_turn' } });
  }
});`;

const KEY = 'sk-acpkey4217';
const NAMED = 'named-secret-4217';

/** Nothing is pretended but the agent. */
describe('an agent of the operator’s list in a real sandbox', () => {
  let folder: string;
  let harness: ProcessHarness;
  let app: TestApp;
  let client: StartsClient;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'agents-'));
    const list = path.join(folder, 'agents.json');
    const tiny = {
      name: 'tiny',
      command: process.execPath,
      args: ['-e', AGENT],
      env: { MODEL_KEY: '${llm_api_key}', MODEL: '${llm_model}' },
      secrets: ['llm_api_key', 'NAMED_SECRET'],
    };
    const missing = { name: 'missing', command: 'no-such-agent', install: 'npm install -g no-such-agent' };
    await writeFile(list, JSON.stringify([tiny, missing]));
    harness = await processHarness('auto');
    app = await createTestApp({ ACP_AGENTS_FILE: list, ALLOW_UNSANDBOXED: 'true' }, undefined, {
      sandboxBackend: harness.backend,
    });
    client = new StartsClient(app, app.user);
    await client.settings({ llm_model: 'openai/scripted', llm_api_key: KEY, agent: 'acp:tiny' });
  });

  afterAll(async () => {
    await app.close();
    await harness.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  it('sees what the list gives it, and says what it lacks', async () => {
    const secrets = { NAMED_SECRET: NAMED, OTHER_SECRET: 'other-secret-4217' };
    const task = await client.start({ secrets, ...say('Look around.') });
    const ready = await client.reached(task, 'READY');
    expect(ready.notes.join(' ')).toContain('cannot load earlier sessions');
    expect(ready.notes.join(' ')).toContain('is not given OTHER_SECRET');
    const answers = async (): Promise<string[]> => {
      const rows: { text: unknown }[] = await app.dataSource.query(
        `SELECT body->'llm_message'->'content'->0 AS text FROM conversation_events
         WHERE conversation_id = $1 AND kind = 'MessageEvent' AND body->>'source' = 'agent'`,
        [ready.appConversationId],
      );
      return rows.map(({ text }) => jsonText(text, 'text') ?? '');
    };
    await until(async () => (await answers()).length > 0);
    const [seen = ''] = await answers();
    expect(JSON.parse(seen)).toEqual({
      cwd: ready.workingDir,
      named: '<secret-hidden>',
      other: null,
      key: '<secret-hidden>',
      model: 'openai/scripted',
      processes: expect.any(Number),
    });
  });

  it('ends the start when it is not installed, with how to install it', async () => {
    const task = await client.start({ agent: 'acp:missing', ...say('Work.') });
    const failed = await client.reached(task, 'ERROR');
    expect(failed.detail).toContain('no-such-agent was not found');
    expect(failed.detail).toContain('npm install -g no-such-agent');
    expect(failed.detail?.includes('SANDBOX_READ_PATHS')).toBe(harness.backend.isolation === 'bwrap');
  });
});
