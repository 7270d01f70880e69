import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { resolve } from 'node:path';
import type { McpServers } from '@slipway/agent-protocol/conversation-api.js';
import { SecretMasker } from '../../src/secret-masker.js';
import { McpToolbox } from '../../src/tools/mcp/mcp-toolbox.js';
import type { MemoryEngineHost } from '../fakes/memory-engine-host.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder, type Script } from '../fakes/scripted-llm.js';
import { until } from '../../../../test/support/until.js';
import { codesOf, NativeAgent } from './native-agent.js';

const SERVER = resolve('packages/agent-server/test/fakes/mcp-servers/scripted-stdio-server.mjs');
const TOKEN = 'token-of-the-server-1234';

let agent: NativeAgent;
beforeAll(async () => {
  agent = await NativeAgent.start();
});
afterEach(async () => {
  await agent.forget();
});
afterAll(async () => {
  await agent.close();
});

function program(behaviour: string): McpServers {
  return { near: { command: process.execPath, args: [SERVER], env: { BEHAVIOUR: behaviour, TOKEN } } };
}

async function run(
  behaviour: string,
  script: Script = inOrder(call('act', {}), say('done')),
): Promise<MemoryEngineHost> {
  return await agent.run(script, { mcpConfig: program(behaviour) });
}

function result(host: MemoryEngineHost): string {
  const [event] = host.log.flatMap((entry) =>
    entry.kind === 'ObservationEvent' || entry.kind === 'AgentErrorEvent' ? [entry] : [],
  );
  return JSON.stringify(event?.kind === 'AgentErrorEvent' ? event.error : event?.observation.content);
}

// modelcontextprotocol/typescript-sdk#153, anomalyco/opencode#35729: "connection closed" is all that is said.
describe('a program that ends', () => {
  it('at once: the event has the beginning and the end of what it wrote', async () => {
    const host = await run('dies at once', inOrder(say('done')));
    expect(codesOf(host)).toEqual(['McpServerUnavailable']);
    const [{ detail } = { detail: '' }] = host.ofKind('ConversationErrorEvent');
    expect(detail).toContain(
      `The tool server near (${process.execPath}) cannot be used: it ended with exit code 3`,
    );
    expect(detail).toContain('the database is not reachable');
    expect(detail).toContain('Error: no key');
    expect(detail).not.toContain('\u001b');
    expect(new SecretMasker([TOKEN]).text(detail)).not.toContain('token-of');
    expect(detail.length).toBeLessThan(3_000);
    expect(host.status).toBe('finished');
  });

  it('during a call: the model reads why, and it is started again', async () => {
    const host = await run('dies in calls');
    expect(result(host)).toContain(
      'it ended with exit code 1; on standard error it wrote:\\npanic: index out of range',
    );
    expect(codesOf(host)).toEqual(['McpServerEnded']);
    expect(host.status).toBe('finished');
  });

  it('between two calls: it is started again before the next one', async () => {
    const host = await run('dies after calls');
    expect(result(host)).toContain('last');
    await until(async () => {
      await agent.goOn(host);
      return codesOf(host).length > 0;
    });
    const [{ detail } = { detail: '' }] = host.ofKind('ConversationErrorEvent');
    expect(detail).toContain('has ended: it ended with exit code 7');
    expect(detail).toContain('out of memory');
    expect(detail).toContain('It was started again.');
  });

  it('again and again is started three times in a run', async () => {
    const host = await run('dies in calls', ({ index }) =>
      index < 6 ? call('act', { index }) : say('done'),
    );
    expect(codesOf(host)).toEqual(Array.from({ length: 4 }, () => 'McpServerEnded'));
    expect(host.ofKind('ConversationErrorEvent').at(-1)?.detail).toContain(
      'not started again before the next message',
    );
    expect(host.status).toBe('finished');
    await host.say('Go on.');
    agent.llm.script = inOrder(say('done'));
    await agent.goOn(host);
    expect(agent.llm.requests.at(-1)?.tools).toContain('act');
  });

  it('never answers: what it wrote is in the event', async () => {
    const toolbox = new McpToolbox();
    const environment = { PATH: process.env['PATH'] ?? '' };
    // A shell is there at once, on a busy machine too, where Node.js takes longer than the deadline.
    const args = ['-c', 'echo downloading the internet >&2; exec sleep 1000'];
    const notices = await toolbox.connect(
      { near: { command: 'sh', args } },
      {
        workingDir: '/',
        environment,
        wrapper: [],
        checkUrl: async () => null,
        connectTimeoutMs: 1_500,
      },
      new AbortController().signal,
    );
    await toolbox.close();
    expect(notices).toMatchObject([
      {
        detail: expect.stringMatching(/no response within 1\.5 s; on standard error it wrote:\ndownloading/),
      },
    ]);
  });
});

// RLabs-Inc/gemini-mcp#31: output that is no message ends the connection.
describe('a program that writes', () => {
  it.each([
    ['writes garbage', 'done'],
    ['has nulls', 'done'],
    ['answers as in 1.0', 'done'],
    ['answers in text', 'answered with \\"done\\", not with an object'],
  ])('what is no valid message is understood as far as possible: %s', async (behaviour, text) => {
    const host = await run(behaviour);
    expect(result(host)).toContain(text);
    expect(codesOf(host)).toEqual([]);
    expect(host.status).toBe('finished');
  });

  it('requests gets answers', async () => {
    expect(result(await run('asks'))).toContain('q0: {}, q1: -32601, q2: -32601, q3: -32601');
  });

  it('another version of the protocol is named', async () => {
    const host = await run('is of the future', inOrder(say('done')));
    expect(host.ofKind('ConversationErrorEvent')).toMatchObject([
      { code: 'McpServerUnavailable', detail: expect.stringContaining('2099-01-01') },
    ]);
  });
});
