import { beforeEach, describe, expect, it } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { call, calls, say, type ScriptedAnswer } from '../fakes/scripted-llm.answers.js';
import { SCRIPTED_AGENT } from '../fakes/memory-engine-host.js';
import { inOrder } from '../fakes/scripted-llm.js';
import { nativeServer } from './native-server.js';

// https://github.com/appleboy/ssh-action/issues/144: a command runs with asterisks where it had the value of a secret.

const KEY = 'sk-5519-of-a-test';
const HIDDEN = '<secret-hidden>';
const CONFIRM = { confirmation_policy: { kind: 'AlwaysConfirm' } };
const SHOUTING = {
  command: process.execPath,
  args: [path.resolve('packages/agent-server/test/fakes/mcp-servers/stdio-server.mjs')],
};

const native = nativeServer();
/** Of a test. */
let folder: string;
let count = 0;

beforeEach(() => {
  count += 1;
  folder = path.join(native().server.workspace, `project-${count}`);
});

async function startWith(answers: ScriptedAnswer[], members: Record<string, unknown> = {}): Promise<string> {
  return await native().begin(inOrder(...answers), {
    workspace: { kind: 'LocalWorkspace', working_dir: path.basename(folder) },
    secrets: { API_KEY: KEY, IS_TRUE: 'true', ENVIRONMENT: 'production', FOLDER: '/etc/app' },
    ...members,
  });
}

async function eventsOf(id: string): Promise<string> {
  return JSON.stringify(await native().server.client.events(id));
}

const fileNamed = async (name: string): Promise<string> => await readFile(path.join(folder, name), 'utf8');

const filesOf = async (id: string): Promise<string> => {
  const kept = native().server.folderOf(id);
  const names = await readdir(kept);
  return (await Promise.all(names.map((name) => readFile(path.join(kept, name), 'utf8')))).join('\n');
};

const creating = (name: string, text: string) => ({
  name: 'file_editor',
  arguments: { command: 'create', path: path.join(folder, name), file_text: text },
});
const write = (name: string, text: string) => calls(creating(name, text));

async function untilAsked(id: string): Promise<void> {
  await native().server.client.talk(id, 'Do it.', 'waiting_for_confirmation');
}

async function respond(id: string, accept: boolean, status: string): Promise<void> {
  const { client } = native().server;
  await client.act(id, 'events/respond_to_confirmation', { accept });
  await client.untilStatus(id, status);
}

describe('a tool that is called with the value of a secret', () => {
  it('writes words, short values and paths into files, and shows them', async () => {
    const text = 'fast = true\nmode = production\nroot = /etc/app/x\n';
    const id = await startWith([
      write('settings.ini', text),
      call('terminal', { command: 'if true; then echo production > mode; fi' }),
      say('Done.'),
    ]);
    await native().talk(id);
    expect(await fileNamed('settings.ini')).toBe(text);
    expect(await fileNamed('mode')).toBe('production\n');
    expect(await eventsOf(id)).not.toContain(HIDDEN);
  });

  it('gets what the model wrote, in every tool; events and results show none of it', async () => {
    const { llm } = native();
    const answers = [
      calls(
        { name: 'terminal', arguments: { command: `printf %s '${KEY}' > key; cat key` } },
        creating('.env', `API_KEY=${KEY}\n`),
        { name: 'shout', arguments: { text: KEY } },
      ),
      say(`The key is ${KEY}.`),
    ];
    const model = { model: 'openai/fake', api_key: 'llm-key-5519', base_url: llm.url };
    const agent = { kind: 'Agent', llm: model, mcp_config: { mcpServers: { local: SHOUTING } } };
    const id = await startWith(answers, { agent });
    await native().talk(id);
    const events = await eventsOf(id);
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
    await untilAsked(id);
    expect(await eventsOf(id)).not.toContain(KEY);
    if (when !== 'at once') {
      await native().server.restart();
      await native().moveTo(id, native().llm.url, { secrets: { API_KEY: KEY } });
    }
    await respond(id, true, 'finished');
    expect(await fileNamed('.env')).toBe(`API_KEY=${KEY}\n`);
    expect(await eventsOf(id)).not.toContain(KEY);
    expect(await filesOf(id)).not.toContain(KEY);
  });

  it('keeps a call on disk as it is only until it is answered', async () => {
    const id = await startWith([write('.env', KEY), say('Done.')], CONFIRM);
    await untilAsked(id);
    expect(await filesOf(id)).toContain(KEY);
    await respond(id, false, 'idle');
    expect(await filesOf(id)).not.toContain(KEY);
  });
});

const SECRETS = {
  DEPLOY_KEY: {
    kind: 'StaticSecret',
    value: 'value-of-deploy-key',
    description: 'For the\nstaging <server>',
  },
  BARE: 'value-of-bare',
  GONE: { kind: 'StaticSecret', value: null, description: 'has no value' },
};

// OpenHands/OpenHands#11857, OpenHands/software-agent-sdk#1295: the agent does not know that the user gave it secrets.
it('our agent is told the names and descriptions of its secrets, and no value', async () => {
  const { client } = native().server;
  const id = await native().begin(inOrder(say('done')), { secrets: SECRETS });
  await native().talk(id);
  expect(lastPrompt()).toContain('- $BARE\n- $DEPLOY_KEY: For the staging server\n');
  expect(lastPrompt()).not.toContain('GONE');
  expect(lastPrompt()).not.toContain('value-of');

  // Given again in another order, as after a restart: the prompt stays.
  const { BARE, ...others } = SECRETS;
  await client.act(id, 'credentials', { secrets: { ...others, BARE } });
  await native().talk(id);
  expect(await prompts(id)).toBe(1);

  await client.act(id, 'credentials', { secrets: { LATER: 'value-of-later' } });
  await native().talk(id);
  expect(lastPrompt()).toContain('- $LATER\n');
  expect(await prompts(id)).toBe(2);
});

it('an agent of others is told with its first message', async () => {
  const { client, folder: home } = native().server;
  const agent = { kind: 'ACPAgent', acp_command: SCRIPTED_AGENT, acp_env: { HOME: home } };
  const id = await client.start({ agent, secrets: SECRETS });
  const answer = await client.answerTo(id, 'prompt');
  expect(answer).toContain('- $DEPLOY_KEY: For the staging server');
  expect(answer).not.toContain('value-of');
});

it('no secrets, no words about them', async () => {
  const id = await native().begin(inOrder(say('done')));
  await native().talk(id);
  expect(lastPrompt()).not.toContain('SECRETS');
});

function lastPrompt(): unknown {
  return native().llm.requests.at(-1)?.messages[0]?.content;
}

async function prompts(id: string): Promise<number> {
  return (await native().server.client.kinds(id)).filter((kind) => kind === 'SystemPromptEvent').length;
}
