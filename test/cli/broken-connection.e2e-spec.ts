import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { runSlipway } from '../../src/cli/slipway-program.js';
import { startGitHttpServer, type GitHttpServer } from '../fakes/git-http-server.js';
import { InProcessSandboxBackend } from '../fakes/in-process-sandbox-backend.js';
import type { TestUser } from '../support/create-test-app.js';
import { Relay } from '../support/relay.js';
import { say, StartsClient } from '../support/starts-client.js';
import { until } from '../support/until.js';
import { useGitHosts } from '../support/use-git-hosts.js';

describe('a service that goes away while slipway follows a conversation', () => {
  let git: GitHttpServer;
  const backend = new InProcessSandboxBackend();
  let relay: Relay;
  let user: TestUser;
  let lines: string[];
  let notes: string[];
  const output = {
    result: (line: string) => void lines.push(line),
    note: (line: string) => void notes.push(line),
  };

  afterAll(() => relay.goAway());
  const { hosts, app } = useGitHosts(
    async ({ worlds }) => {
      git = await startGitHttpServer(`x-access-token:${worlds.github.token}`);
      await git.commit('octo/app', 'main', { 'README.md': 'hello' });
      return { GITHUB_CLONE_URL: git.origin };
    },
    { sandboxBackend: backend },
  );

  beforeAll(async () => {
    relay = await Relay.before({ host: '127.0.0.1', port: Number(new URL(app.url).port) });
  });

  beforeEach(async () => {
    user = await app.createUser();
    await new StartsClient(app, user).settings({ llm_model: 'openai/gpt-4o', llm_api_key: 'sk-4217' });
    lines = [];
    notes = [];
  });

  afterEach(async () => {
    await relay.goAway();
    await relay.comeBack();
  });

  afterAll(() => git.close());

  const slipway = async (args: string[], options: { awayMs?: number } = {}): Promise<number> => {
    const url = `http://127.0.0.1:${relay.port}`;
    return await runSlipway(args, output, () => ({ url, key: user.key, isLocal: false, ...options }));
  };

  /** A conversation whose agent works until it is paused. */
  const working = async (): Promise<string> => {
    const starts = new StartsClient(app, user);
    const task = await starts.reached(await starts.start(say('step')), 'READY');
    return task.appConversationId;
  };

  const act = async (id: string, action: string, body: object = {}): Promise<void> => {
    const path = `/api/v1/app-conversations/${id}/${action}`;
    await app.as(user).post(path, body).expect(200);
  };

  const finish = async (id: string): Promise<void> => {
    await act(id, 'pause');
    await act(id, 'send-message', { content: [{ type: 'text', text: 'say done' }], run: true });
  };

  /** The service is gone, and answers 503 as one that stops until it was asked. */
  const restart = async (meanwhile: () => Promise<void>): Promise<void> => {
    const { port } = relay;
    await relay.goAway();
    let asked = 0;
    const stopping = createServer((_request, response) => {
      asked += 1;
      response.writeHead(503, { Connection: 'close' }).end();
    });
    await once(stopping.listen(port, '127.0.0.1'), 'listening');
    await until(() => asked > 0);
    await meanwhile();
    await once(stopping.close(), 'close');
    await relay.comeBack();
  };

  const idsOf = (texts: readonly string[]): unknown[] => texts.map((text) => jsonText(parseJson(text), 'id'));

  const storedIds = async (id: string): Promise<unknown[]> => {
    const { body } = await app.as(user).get(`/api/v1/conversation/${id}/events/search?limit=100`).expect(200);
    return body.items.map((event: { id: string }) => event.id);
  };

  it('is followed where its stream broke: no event is lost or repeated', async () => {
    const id = await working();
    const watching = slipway(['watch', '--json', id]);
    await until(() => lines.some((line) => line.includes('"running"')));
    await relay.goAway();
    await finish(id);
    await until(async () => (await storedIds(id)).length > lines.length);
    await relay.comeBack();

    expect(await watching).toBe(0);
    expect(idsOf(lines)).toEqual((await storedIds(id)).slice(0, lines.length));
    expect(lines.at(-1)).toContain('"finished"');
  });

  it('is waited for while it restarts', async () => {
    const id = await working();
    const watching = slipway(['watch', '--json', id]);
    await until(() => lines.some((line) => line.includes('"running"')));
    await restart(async () => await finish(id));

    expect(await watching).toBe(0);
    expect(idsOf(lines)).toEqual((await storedIds(id)).slice(0, lines.length));
    expect(lines.at(-1)).toContain('"finished"');
  });

  it('is waited for while a conversation starts', async () => {
    await app.as(user).post('/api/add-git-providers', hosts.tokens).expect(200);
    backend.gate.close();
    const running = slipway(['run', 'github:octo/app', 'say hello']);
    await until(() => notes.length > 0);
    await restart(async () => backend.gate.open());

    expect(await running).toBe(0);
    expect(notes).toContainEqual(expect.stringMatching(/^READY/));
    expect(notes.at(-1)).toMatch(/^conversation (\w+): http:\S+\/console\/conversations\/\1$/);
    expect(lines.filter((line) => line === 'you: say hello')).toHaveLength(1);
    expect(lines.at(-1)).toBe('— finished');
  });

  it('for good ends the command with words and the status 3', async () => {
    const id = await working();
    const watching = slipway(['watch', id], { awayMs: 0 });
    await until(() => lines.includes('— running'));
    await relay.goAway();

    expect(await watching).toBe(3);
    expect(notes).toEqual([expect.stringMatching(/^slipway: cannot reach http:.*is the service running/)]);
  });
});
