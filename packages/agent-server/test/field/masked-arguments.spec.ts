import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { call, calls, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { startRequest } from '../support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

// https://github.com/appleboy/ssh-action/issues/144: a command runs with asterisks where it had the value of a secret.

const KEY = 'sk-5519-of-a-test';
const HIDDEN = '<secret-hidden>';
const CONFIRM = { confirmation_policy: { kind: 'AlwaysConfirm' } };

let server: TestAgentServer;
let llm: ScriptedLlm;

beforeEach(async () => {
  server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
});

afterEach(async () => {
  await server.stop();
  await llm.close();
});

async function startWith(answers: ScriptedAnswer[], members: Record<string, unknown> = {}): Promise<string> {
  llm = await ScriptedLlm.start(inOrder(...answers));
  return await server.client.start(
    startRequest({
      agent: {
        kind: 'Agent',
        llm: { model: 'openai/fake', api_key: 'llm-key-5519', base_url: llm.url },
        mcp_config: {
          mcpServers: {
            local: {
              command: process.execPath,
              args: [path.resolve('packages/agent-server/test/fakes/mcp-servers/stdio-server.mjs')],
            },
          },
        },
      },
      secrets: { API_KEY: KEY, IS_TRUE: 'true', ENVIRONMENT: 'production', FOLDER: '/etc/app' },
      ...members,
    }),
  );
}

async function workAt(id: string): Promise<string> {
  await server.client.say(id, 'Do it.');
  await server.client.untilStatus(id, 'finished');
  return JSON.stringify(await server.client.events(id));
}

const fileNamed = async (name: string): Promise<string> =>
  await readFile(path.join(server.workspace, 'project', name), 'utf8');

const filesOf = async (id: string): Promise<string> => {
  const folder = path.join(server.folder, 'conversations', id.replaceAll('-', ''));
  const names = await readdir(folder);
  return (await Promise.all(names.map((name) => readFile(path.join(folder, name), 'utf8')))).join('\n');
};

const write = (name: string, text: string) =>
  call('file_editor', {
    command: 'create',
    path: path.join(server.workspace, 'project', name),
    file_text: text,
  });

describe('a tool that is called with the value of a secret', () => {
  it('writes words, short values and paths into files, and shows them', async () => {
    const text = 'fast = true\nmode = production\nroot = /etc/app/x\n';
    const id = await startWith([
      write('settings.ini', text),
      call('terminal', { command: 'if true; then echo production > mode; fi' }),
      say('Done.'),
    ]);
    const events = await workAt(id);
    expect(await fileNamed('settings.ini')).toBe(text);
    expect(await fileNamed('mode')).toBe('production\n');
    expect(events).not.toContain(HIDDEN);
  });

  it('gets what the model wrote, in every tool; events and results show none of it', async () => {
    const id = await startWith([
      calls(
        { name: 'terminal', arguments: { command: `printf %s '${KEY}' > key; cat key` } },
        {
          name: 'file_editor',
          arguments: {
            command: 'create',
            path: path.join(server.workspace, 'project/.env'),
            file_text: `API_KEY=${KEY}\n`,
          },
        },
        { name: 'shout', arguments: { text: KEY } },
      ),
      say(`The key is ${KEY}.`),
    ]);
    const events = await workAt(id);
    expect(await fileNamed('key')).toBe(KEY);
    expect(await fileNamed('.env')).toBe(`API_KEY=${KEY}\n`);
    expect(events).toContain(KEY.toUpperCase());
    expect(events).not.toContain(KEY);
    expect(await filesOf(id)).not.toContain(KEY);
    // The model sees its own words as it wrote them, and what tools say without the secret.
    const messages = llm.requests.at(-1)?.messages ?? [];
    expect(JSON.stringify(messages.filter(({ role }) => role === 'assistant'))).toContain(KEY);
    expect(JSON.stringify(messages.filter(({ role }) => role === 'tool'))).not.toContain(KEY);
  });

  it.each(['at once', 'after a restart of the agent server'])('gets it when confirmed %s', async (when) => {
    const id = await startWith([write('.env', `API_KEY=${KEY}\n`), say('Done.')], CONFIRM);
    await server.client.say(id, 'Do it.');
    await server.client.untilStatus(id, 'waiting_for_confirmation');
    expect(JSON.stringify(await server.client.events(id))).not.toContain(KEY);
    if (when !== 'at once') {
      await server.restart();
      await server.client.post(`/api/conversations/${id}/credentials`, {
        llm_model: 'openai/fake',
        llm_base_url: llm.url,
        llm_api_key: 'llm-key-5519',
        secrets: { API_KEY: KEY },
      });
    }
    await server.client.post(`/api/conversations/${id}/events/respond_to_confirmation`, { accept: true });
    await server.client.untilStatus(id, 'finished');
    expect(await fileNamed('.env')).toBe(`API_KEY=${KEY}\n`);
    expect(JSON.stringify(await server.client.events(id))).not.toContain(KEY);
    expect(await filesOf(id)).not.toContain(KEY);
  });

  it('keeps a call on disk as it is only until it is answered', async () => {
    const id = await startWith([write('.env', KEY), say('Done.')], CONFIRM);
    await server.client.say(id, 'Do it.');
    await server.client.untilStatus(id, 'waiting_for_confirmation');
    expect(await filesOf(id)).toContain(KEY);
    await server.client.post(`/api/conversations/${id}/events/respond_to_confirmation`, { accept: false });
    await server.client.untilStatus(id, 'idle');
    expect(await filesOf(id)).not.toContain(KEY);
  });
});
