import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { RemoteMcpServer } from '../../../packages/agent-server/test/fakes/mcp-servers/remote-mcp-server.js';
import { call, calls } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { reservedPort } from '../../support/reserved-port.js';
import { until } from '../../support/until.js';
import { type ApiClient, type Json, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onMessage } from './support/script.js';
import { STDIO_MCP_SERVER } from './support/stdio-mcp-server.js';

const END = call('finish', { message: 'Done.' });
/** At the price of the journeys' model. */
const ONE_CALL = { promptTokens: 100_000, completionTokens: 10 };

describe('what agents do, seen through the service', () => {
  let world: JourneyWorld;
  let user: ApiClient;
  let sandboxId: string;
  let remote: RemoteMcpServer;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    remote = await RemoteMcpServer.start();
    // The service has to know its own before it listens: sandboxes reach no other port of this machine.
    const port = await reservedPort();
    const hosts = [new URL(remote.httpUrl).host, `127.0.0.1:${port}`];
    await world.start({ PORT: String(port), SANDBOX_NETWORK_ALLOW: hosts.join(',') });
    user = await world.createUser();
    ({ sandboxId } = await user.started({}));
  });

  afterAll(async () => {
    await remote.close();
    await world.close();
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
    const { id } = await user.started({ sandbox_id: sandboxId, ...message('add it up') });
    await user.conversationIn(id, 'finished', 'error');

    const results = await user.eventsOfKind(id, 'ObservationEvent');
    expect(results.slice(0, 3).map((event) => jsonAt(event, 'observation'))).toMatchObject(
      ['40', '41', '42'].map((sum) => ({ is_error: false, content: [{ type: 'text', text: sum }] })),
    );
    expect(await user.eventsOfKind(id, 'ConversationErrorEvent')).toMatchObject([
      { code: 'McpServerUnavailable', detail: expect.stringContaining('dead') },
    ]);
  });

  it('waits for another one in their sandbox, and gets to know what came of it', async () => {
    const asking = await world.createUser();
    // Without a key: each agent gets one of its own.
    await asking.saveSettings({ mcp_config: { shttp_servers: [{ url: `${world.url}/mcp` }] } });
    onMessage('ask for help', (results, { tools }) => {
      const tool = (name: string): string => tools.find((known) => known.endsWith(name)) ?? name;
      const id = /"conversation_id":"([0-9a-f]{32})"/.exec(results[0] ?? '')?.[1];
      const steps = [
        call(tool('start_conversation'), { message: 'be the helper' }),
        call(tool('wait_for_conversation'), { conversation_id: id, seconds: 40 }),
        call(tool('get_result'), { conversation_id: id }),
      ];
      return steps[results.length] ?? call('finish', { message: `I was told: ${results[2]}` });
    });
    onMessage('be the helper', () => call('finish', { message: 'It is forty-two.' }));

    const own = await asking.started(message('ask for help'));
    const parent = await asking.conversationIn(own.id, 'finished', 'error');
    const [childId] = jsonList(parent, 'sub_conversation_ids');
    expect(await asking.conversation(String(childId))).toMatchObject({
      parent_conversation_id: own.id,
      sandbox_id: own.sandboxId,
      execution_status: 'finished',
    });
    const end = await asking.eventOf(own.id, (event) => jsonAt(event, 'tool_name') === 'finish');
    expect(text(end, 'action', 'message')).toContain('It is forty-two.');
  });

  it('spends with those that it has started no more than its budget, whoever spends first', async () => {
    const spender = await world.createUser();
    const cost = (of: Json): number => jsonNumber(of, 'metrics', 'accumulated_cost') ?? 0;
    const startFrom = async (parentId: string, words: string): Promise<string> => {
      const params = { name: 'start_conversation', arguments: { message: words } };
      const { body } = await spender.send(
        'POST',
        '/mcp',
        { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
        { Accept: 'application/json', 'X-Slipway-Conversation': parentId },
      );
      return text(body, 'result', 'structuredContent', 'conversation_id');
    };
    const held = Promise.withResolvers<void>();
    const spendMore = (results: string[]) =>
      call('think', { thought: `Much: ${results.length}.` }, { usage: ONE_CALL });
    onMessage('spend once', () => call('finish', { message: 'Done.' }, { usage: ONE_CALL }));
    onMessage('spend for ever', spendMore);
    onMessage('spend later', async (results) => {
      await held.promise;
      return spendMore(results);
    });

    const { id: first, sandboxId: place } = await spender.started(message('spend once'));
    const price = cost(await spender.conversationIn(first, 'finished'));
    const budget = 8 * price;
    await spender.saveSettings({ max_budget_per_task: budget });
    const { id } = await spender.started({ sandbox_id: place, ...message('spend once') });
    await spender.conversationIn(id, 'finished');
    const child = await startFrom(id, 'spend later');
    await spender.conversationIn(child, 'running');
    const all = [id, child, await startFrom(child, 'spend for ever')];
    held.resolve();
    await spender.say(id, 'spend for ever');
    const costs: number[] = [];
    for (const each of all) {
      await spender.eventOf(each, (event) => jsonText(event, 'code') === 'MaxBudgetReached');
      costs.push(cost(await spender.conversationIn(each, 'error')));
    }

    const total = costs.reduce((sum, each) => sum + each, 0);
    expect(total).toBeGreaterThan(budget / 2);
    expect(total).toBeLessThanOrEqual(budget + costs.length * price);
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
