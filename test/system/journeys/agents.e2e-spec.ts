import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { RemoteMcpServer } from '../../../packages/agent-server/test/fakes/mcp-servers/remote-mcp-server.js';
import {
  call,
  calls,
  fails,
  say,
  type ScriptedAnswer,
} from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { until } from '../../support/until.js';
import { type ApiClient, type Json, type Started, text } from './support/api-client.js';
import { commandLines } from './support/command-lines.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onMessage, shell } from './support/script.js';
import { STDIO_MCP_SERVER } from './support/stdio-mcp-server.js';

jest.setTimeout(180_000);

const END = call('finish', { message: 'Done.' });
const NO_LIMITS = {
  max_iterations: null,
  max_budget_per_task: null,
  confirmation_mode: false,
  mcp_config: null,
};

describe('what agents do, seen through the service', () => {
  let world: JourneyWorld;
  let user: ApiClient;
  let sandboxId: string;
  let remote: RemoteMcpServer;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    remote = await RemoteMcpServer.start();
    await world.start({
      LLM_TIMEOUT_SECONDS: '10',
      SANDBOX_NETWORK_ALLOW: new URL(remote.httpUrl).host,
    });
    user = await world.createUser();
    ({ sandboxId } = await user.started({}));
  });

  afterEach(async () => {
    await user.saveSettings(NO_LIMITS);
  });

  afterAll(async () => {
    await remote.close();
    await world.close();
  });

  /** A further conversation in the sandbox of this file. */
  const converse = async (words: string): Promise<Started> =>
    user.started({ sandbox_id: sandboxId, ...message(words) });
  const observations = async (id: string): Promise<Json[]> =>
    (await user.eventsOfKind(id, 'ObservationEvent')).map((event) => jsonAt(event, 'observation'));
  const problems = async (id: string): Promise<Json[]> => user.eventsOfKind(id, 'ConversationErrorEvent');

  it('waits for a yes, and takes a no with its reason', async () => {
    await user.saveSettings({ confirmation_mode: true });
    const { id } = await converse(shell('echo yes > yes.txt'));
    await user.conversationIn(id, 'waiting_for_confirmation');
    expect((await user.run(sandboxId, 'ls')).output).not.toContain('yes.txt');
    await user.post(`/api/v1/app-conversations/${id}/respond-to-confirmation`, { accept: true });
    await user.conversationIn(id, 'finished');
    expect((await user.run(sandboxId, 'cat yes.txt')).output).toBe('yes\n');

    await user.say(id, shell('echo no > no.txt'));
    await user.conversationIn(id, 'waiting_for_confirmation');
    await user.post(`/api/v1/app-conversations/${id}/respond-to-confirmation`, {
      accept: false,
      reason: 'Not on a Friday.',
    });
    await user.conversationIn(id, 'idle');
    await user.say(id, 'Then leave it.');
    await user.conversationIn(id, 'finished');
    expect((await user.run(sandboxId, 'ls')).output).not.toContain('no.txt');
    expect(await user.eventsOfKind(id, 'UserRejectObservation')).toMatchObject([
      { rejection_reason: 'Not on a Friday.' },
    ]);
    expect(world.llm.requests.at(-1)?.text).toContain('Not on a Friday.');
  });

  it('stops at the number of steps, and counts anew after a message', async () => {
    onMessage('think for ever', () => call('think', { thought: 'Hm.' }));
    await user.saveSettings({ max_iterations: 2 });
    const { id } = await converse('think for ever');
    await user.eventOf(id, (event) => jsonText(event, 'code') === 'MaxIterationsReached');
    expect(await user.eventsOfKind(id, 'ActionEvent')).toHaveLength(2);
    await user.say(id, 'Thank you.');
    await user.conversationIn(id, 'finished');
    expect(await problems(id)).toHaveLength(1);
  });

  it('stops when the money is spent, and spends no more after a message until the limit is raised', async () => {
    const usage = { promptTokens: 100_000, completionTokens: 10 };
    onMessage('spend money', () => call('think', { thought: 'Much.' }, { usage }));
    await user.saveSettings({ max_budget_per_task: 0.1 });
    const { id } = await converse('spend money');
    await user.eventOf(id, (event) => jsonText(event, 'code') === 'MaxBudgetReached');
    expect(await user.eventsOfKind(id, 'ActionEvent')).toHaveLength(1);
    const asked = world.llm.requests.length;
    await user.say(id, 'spend money');
    await user.once(
      () => problems(id),
      (found) => Array.isArray(found) && found.length === 2,
    );
    expect(world.llm.requests).toHaveLength(asked);
    expect(jsonAt(await user.conversation(id), 'metrics', 'accumulated_cost')).toBeGreaterThan(0.1);

    await user.saveSettings({ max_budget_per_task: 100 });
    await user.say(id, 'Thank you.');
    const ended = await user.conversationIn(id, 'finished');
    expect(jsonAt(ended, 'metrics', 'max_budget_per_task')).toBe(100);
    expect(await problems(id)).toHaveLength(2);
  });

  it('says why a model does not answer, and tries again with the next message', async () => {
    const asked = new Map<string, number>();
    const failing = async (name: string, answer: ScriptedAnswer, code: string, detail: string) => {
      onMessage(name, () => {
        asked.set(name, (asked.get(name) ?? 0) + 1);
        return answer;
      });
      const { id } = await converse(name);
      await user.conversationIn(id, 'error');
      const problem = await user.eventOf(id, (event) => jsonText(event, 'kind') === 'ConversationErrorEvent');
      expect(problem).toMatchObject({ code, detail: expect.stringContaining(detail) });
      await user.say(id, 'Once more.');
      await user.conversationIn(id, 'finished');
    };
    const recovering = async (name: string, answer: ScriptedAnswer) => {
      const answers = [answer];
      onMessage(name, () => answers.shift() ?? say('Here I am.'));
      const { id } = await converse(name);
      await user.conversationIn(id, 'finished');
      expect(await problems(id)).toEqual([expect.objectContaining({ code: 'LlmRetried' })]);
      expect(answers).toEqual([]);
    };

    await Promise.all([
      failing('wrong key', fails(401, 'bad key for acme'), 'LlmAuthenticationFailed', 'bad key for acme'),
      failing('silent provider', { kind: 'hang' }, 'LlmTimeout', '10'),
      recovering('busy provider', fails(429, 'slow down', { 'retry-after': '0' })),
      recovering('cut provider', { kind: 'cut', text: 'I wan' }),
    ]);
    expect(Object.fromEntries(asked)).toEqual({ 'wrong key': 1, 'silent provider': 1 });
  });

  it('goes on after arguments that are no JSON, and after a command that takes too long', async () => {
    onMessage('mumble', (results) => (results.length === 0 ? call('terminal', '{"command": "ec') : END));
    const sleep = `sleep ${randomInt(100_000, 999_999)}.5`;
    onMessage('sleep long', (results) =>
      results.length === 0 ? call('terminal', { command: sleep, timeout: 0.5 }) : END,
    );
    const [mumbled, slept] = await Promise.all([converse('mumble'), converse('sleep long')]);
    await user.conversationIn(mumbled.id, 'finished');
    await user.conversationIn(slept.id, 'finished');
    expect(await user.eventsOfKind(mumbled.id, 'AgentErrorEvent')).toHaveLength(1);
    expect((await observations(slept.id))[0]).toMatchObject({ is_error: true, timeout: true });
    expect(commandLines().filter((line) => line.includes(sleep))).toEqual([]);
  });

  it('uses tool servers of all three kinds, and goes on without a dead one', async () => {
    const { output } = await user.run(
      sandboxId,
      `echo ${Buffer.from(STDIO_MCP_SERVER).toString('base64')} | base64 -d > server.mjs; pwd`,
    );
    const key = () => world.secrets.plant('tool server key');
    await user.saveSettings({
      mcp_config: {
        sse_servers: [{ url: remote.sseUrl, api_key: key() }],
        shttp_servers: [{ url: remote.httpUrl, api_key: key() }],
        stdio_servers: [
          {
            name: 'local',
            command: process.execPath,
            args: [`${output.trim()}/server.mjs`],
            env: { ADDER_KEY: key() },
          },
          { name: 'dead', command: 'no-such-program-anywhere' },
        ],
      },
    });
    onMessage('add it up', (results, { tools }) => {
      const adders = tools.filter((name) => /(^|_)add$/.test(name));
      return results.length === 0
        ? calls(...adders.map((name, index) => ({ name, arguments: { a: 40, b: index } })))
        : END;
    });
    const { id } = await converse('add it up');
    await user.conversationIn(id, 'finished', 'error');

    expect((await observations(id)).slice(0, 3)).toMatchObject(
      ['40', '41', '42'].map((sum) => ({ is_error: false, content: [{ type: 'text', text: sum }] })),
    );
    expect(await problems(id)).toMatchObject([
      { code: 'McpServerUnavailable', detail: expect.stringContaining('dead') },
    ]);
  });

  it('gives secrets to tools, and shows them in no event', async () => {
    const value = 'deploy-secret-5519-of-a-journey';
    await user.post('/api/secrets', { name: 'DEPLOY_TOKEN', value });
    const { id } = await converse(shell('echo "${#DEPLOY_TOKEN} $DEPLOY_TOKEN"'));
    await user.conversationIn(id, 'finished');
    const events = JSON.stringify(await user.events(id));
    expect(events).toContain(`${value.length} <secret-hidden>`);
    expect(events).not.toContain(value);
    expect(world.llm.requests.some(({ text: history }) => history.includes(value))).toBe(false);
  });

  it('shows an agent server that is killed as an error, and goes on from there when it is resumed', async () => {
    onMessage('be interrupted', (results) =>
      results.length === 0 ? call('terminal', { command: 'echo begun; sleep 1000' }) : END,
    );
    const own = await user.started(message('be interrupted'));
    const action = await user.eventOf(own.id, (event) => jsonText(event, 'kind') === 'ActionEvent');
    await until(() =>
      world.sandboxProcesses(own.sandboxId).some((pid) => commandOf(pid).includes('sleep 1000')),
    );

    const servers = world.sandboxProcesses(own.sandboxId).filter(isAgentServer);
    servers.forEach((pid) => process.kill(pid, 'SIGKILL'));

    const failed = await user.sandboxIn(own.sandboxId, 'ERROR');
    expect(text(failed, 'status_detail')).toMatch(
      /^Its program ended by itself \((signal SIGKILL|exit code 137)\)/,
    );
    await until(() => world.sandboxProcesses(own.sandboxId).length === 0);

    await user.post(`/api/v1/sandboxes/${own.sandboxId}/resume`);
    await user.sandboxIn(own.sandboxId, 'RUNNING');
    await user.conversationIn(own.id, 'finished');
    expect(await user.eventsOfKind(own.id, 'AgentErrorEvent')).toMatchObject([
      { tool_call_id: text(action, 'tool_call_id') },
    ]);
  });
});

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    // It has just ended.
    return '';
  }
}

/** Not what wraps it. */
function isAgentServer(pid: number): boolean {
  return commandOf(pid).includes('agent-server/main.js') && readdirSync(`/proc/${pid}/task`).length > 2;
}
