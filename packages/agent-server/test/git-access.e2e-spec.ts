import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createNativeEngine } from '../src/engine/native/native.engine.js';
import { toolEnvironment } from '../src/tool-view.js';
import { call, say } from './fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from './fakes/scripted-llm.js';
import { credentialsWithModelAt, SESSION_KEY, startWithModelAt } from './support/agent-server-client.js';
import { type GitHttpServer, startGitHttpServer } from '../../../test/fakes/git-http-server.js';
import { startTestAgentServer, type TestAgentServer } from './support/test-agent-server.js';

const TOKEN = 'token-of-the-git-host';
const NAME = 'team/project';
const IDENTITY = { name: 'Ada', email: 'ada@example.com' };
const WORK = 'echo b > b.txt && git add . && git commit -qm b && git log -1 --format=%an,%ae';

let host: GitHttpServer;
let server: TestAgentServer;

describe('an agent and its git server', () => {
  let llm: ScriptedLlm;

  beforeEach(async () => {
    llm = await ScriptedLlm.start(inOrder(say('done')));
    host = await startGitHttpServer(`user:${TOKEN}`);
    server = await startTestAgentServer({
      createEngine: async (context) =>
        createNativeEngine(context, {
          workspace: '/workspace',
          webhook: null,
          sessionKeys: [SESSION_KEY],
          toolWrapper: [],
          aliases: [],
          environment: toolEnvironment(process.env),
          conversationsPath: `${server.folder}/conversations`,
        }),
    });
  });

  afterEach(async () => {
    await server.stop();
    await host.close();
    await llm.close();
  });

  /** Starts a conversation in a clone, and gives it credentials as the service does after a restart. */
  async function start(expose: boolean): Promise<string> {
    await host.commit(NAME, 'main', { 'a.txt': 'a' });
    // The shell has the name of the user from the conversation alone.
    const clone = {
      url: `${host.origin}/${NAME}.git`,
      directory: 'project',
      branch: null,
      new_branch: 'work',
    };
    const user = { username: 'user', password: TOKEN, identity: null };
    await server.client.post('/api/git/prepare', { ...clone, ...user });
    const git = {
      credentials: [{ origin: host.origin, username: 'user', password: TOKEN }],
      expose,
      identity: IDENTITY,
    };
    const id = await server.client.start({ ...startWithModelAt(llm.url), slipway: { git } });
    await server.restart();
    await server.client.act(id, 'credentials', { ...credentialsWithModelAt(llm.url), git });
    return id;
  }

  async function converse(id: string): Promise<string> {
    await server.client.talk(id, 'Go.');
    const events = JSON.stringify(await server.client.events(id));
    expect(events).not.toContain(TOKEN);
    return events;
  }

  it("pushes from its shell when it may, with the user's name", async () => {
    const id = await start(true);
    llm.script = inOrder(
      call('terminal', { command: `${WORK} && git push -q origin work && env` }),
      say('ok'),
    );
    expect(await converse(id)).toContain('Ada,ada@example.com');
    expect(await host.show(NAME, 'work', '%an %s')).toBe('Ada b');
    expect(llm.requests[0]?.tools).not.toContain('git_remote');
    expect(llm.requests.at(-1)?.text).toContain('<secret-hidden>');
  });

  it('has the agent server fetch and push when its shell may not', async () => {
    const id = await start(false);
    await host.commit(NAME, 'news', { 'c.txt': 'c' });
    llm.script = inOrder(
      call('terminal', { command: `${WORK}; git push origin work; env` }),
      call('git_remote', { operation: 'push', branch: 'work' }),
      call('git_remote', { operation: 'fetch' }),
      call('terminal', { command: 'git show origin/news:c.txt' }),
      call('git_remote', { operation: 'clone', url: `${host.origin}/${NAME}.git`, folder: 'second' }),
      call('git_remote', { operation: 'clone', url: `${host.origin}/${NAME}.git`, folder: '/etc/second' }),
      say('ok'),
    );
    const events = await converse(id);
    expect(events).toContain('Ada,ada@example.com');
    expect(events).toContain('terminal prompts disabled');
    expect(events).toContain('git push succeeded');
    expect(events).toContain('refs/remotes/origin/news is');
    expect(events).toContain('git clone succeeded');
    expect(events).toContain('/etc/second is not inside the workspace');
    expect(events).not.toMatch(/SLIPWAY_GIT|GIT_CONFIG_KEY_2/);
    expect(await host.show(NAME, 'work', '%an %s')).toBe('Ada b');
    expect(llm.requests[0]?.tools).toContain('git_remote');
  });
});
