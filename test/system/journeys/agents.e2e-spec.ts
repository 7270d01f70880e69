import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { RemoteMcpServer } from '../../../packages/agent-server/test/fakes/mcp-servers/remote-mcp-server.js';
import { call, calls } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import { until } from '../../support/until.js';
import { type ApiClient, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onMessage } from './support/script.js';
import { STDIO_MCP_SERVER } from './support/stdio-mcp-server.js';

const END = call('finish', { message: 'Done.' });

describe('what agents do, seen through the service', () => {
  let world: JourneyWorld;
  let user: ApiClient;
  let sandboxId: string;
  let remote: RemoteMcpServer;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    remote = await RemoteMcpServer.start();
    await world.start({ SANDBOX_NETWORK_ALLOW: new URL(remote.httpUrl).host });
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
