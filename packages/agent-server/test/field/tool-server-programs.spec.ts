import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { readFile, writeFile } from 'node:fs/promises';
import { SecretMasker } from '../../src/secret-masker.js';
import { McpToolbox } from '../../src/tools/mcp/mcp-toolbox.js';
import { type MemoryEngineHost, NEVER_MS } from '../fakes/memory-engine-host.js';
import { toolboxOptions } from '../fakes/mcp-servers/toolbox-options.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, inOrder, type Script } from '../fakes/scripted-llm.js';
import { pastDeadline } from '../../../../test/support/past-deadline.js';
import { until } from '../../../../test/support/until.js';
import { codesOf, detailsOf, expectDone, nativeAgent, resultsOf, scriptedProgram } from './native-agent.js';

const TOKEN = 'token-of-the-server-1234';

const agent = nativeAgent();
afterEach(async () => {
  await agent.forget();
});

async function run(
  behaviour: string,
  script: Script = inOrder(call('act', {}), say('done')),
): Promise<MemoryEngineHost> {
  return await agent.run(script, { mcpConfig: { near: scriptedProgram(behaviour, { TOKEN }) } });
}

function result(host: MemoryEngineHost): string {
  return JSON.stringify(resultsOf(host)[0]);
}

// modelcontextprotocol/typescript-sdk#153, anomalyco/opencode#35729: "connection closed" is all that is said.
describe('a program that ends', () => {
  it('at once: the event has the beginning and the end of what it wrote', async () => {
    const host = await run('dies at once', inOrder(say('done')));
    expect(codesOf(host)).toEqual(['McpServerUnavailable']);
    const [detail = ''] = detailsOf(host);
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

  it.each(['dies after calls', 'dies slowly'])(
    'between two calls, as it %s: it is started again',
    async (how) => {
      const host = await run(how);
      expect(result(host)).toContain('last');
      await until(async () => {
        await agent.goOn(host);
        return codesOf(host).length > 0;
      });
      const [detail = ''] = detailsOf(host);
      expect(detail).toContain('has ended: it ended with exit code 7');
      expect(detail).toContain('out of memory');
      expect(detail).toContain('It was started again.');
    },
  );

  it('and has closed its input before: how it ended is said, once that is known', async () => {
    const host = await run('dies slowly', inOrder(call('act', {}), call('act', {}), say('done')));
    expect(JSON.stringify(resultsOf(host)[1])).toContain(
      'it ended with exit code 7; on standard error it wrote:',
    );
  });

  it('again and again is started three times in a run', async () => {
    const host = await run('dies in calls', ({ index }) =>
      index < 6 ? call('act', { index }) : say('done'),
    );
    expect(codesOf(host)).toEqual(Array.from({ length: 4 }, () => 'McpServerEnded'));
    expect(detailsOf(host).at(-1)).toContain('not started again before the next message');
    expect(host.status).toBe('finished');
    agent.llm.script = inOrder(say('done'));
    await agent.goOn(host, 'Go on.');
    expect(agent.llm.requests.at(-1)?.tools).toContain('act');
  });

  it('never answers: what it wrote is in the event', async () => {
    const toolbox = new McpToolbox();
    const written = join(agent.folder, 'written');
    const args = ['-c', `echo downloading the internet >&2; touch ${written}; exec sleep 1000`];
    const { signal } = new AbortController();
    const connect = async () =>
      await toolbox.connect({ near: { command: 'sh', args } }, toolboxOptions(), signal);
    const hasRead = async () => existsSync(written) && (await nextTurn(true));
    const notices = await pastDeadline(connect, hasRead, NEVER_MS);
    await toolbox.close();
    expect(notices).toMatchObject([
      {
        detail: expect.stringMatching(/no response within 600 s; on standard error it wrote:\ndownloading/),
      },
    ]);
  });
});

// RLabs-Inc/gemini-mcp#31: output that is no message ends the connection.
it.each([
  ['writes garbage', 'done'],
  ['has nulls', 'done'],
  ['answers as in 1.0', 'done'],
  ['answers in text', 'answered with \\"done\\", not with an object'],
])(
  'a program that writes what is no valid message is understood as far as possible: %s',
  async (behaviour, text) => {
    const host = await run(behaviour);
    expect(result(host)).toContain(text);
    expectDone(host);
  },
);

// obot-platform/obot#6185, github/copilot-cli#4421: npx and uvx download first, and are killed and begun anew each time.

describe('a program that starts slowly', () => {
  let gate = '';
  let tests = 0;

  beforeEach(() => {
    agent.slowAfterMs = 1;
    tests += 1;
    gate = join(agent.folder, `gate-${tests}`);
  });

  const slow = () => ({
    maxIterations: 100_000,
    mcpConfig: { near: scriptedProgram('starts slowly', { GATE: gate }) },
  });
  /** Thinks until the tool is there. */
  const actWhenPossible = async ({ tools, messages, index }: ChatRequest) => {
    await until(() => existsSync(`${gate}.listed`));
    return messages.some(({ tool_calls: made }) => made?.[0]?.function.name === 'act')
      ? say('Done.')
      : tools.includes('act')
        ? call('act', {})
        : call('think', { thought: `${index}` });
  };

  it('does not hold up the work: its tools come when they are there', async () => {
    const host = await agent.run(async (request) => {
      await (request.index === 0 ? writeFile(gate, '') : undefined);
      return await actWhenPossible(request);
    }, slow());
    expect(host.status).toBe('finished');
    expect(agent.llm.requests[0]?.tools).not.toContain('act');
    expect(codesOf(host)).toEqual(['ToolServerStarting', 'ToolServerReady']);
    expect(detailsOf(host)[0]).toContain('near');
    expect(host.ofKind('ObservationEvent').at(-1)).toMatchObject({ tool_name: 'act' });
  });

  it('is not begun anew with the next message', async () => {
    const host = await agent.run(() => say('Hello.'), slow());
    expect(host.status).toBe('finished');
    await agent.goOn(host, 'And now?');
    expect(codesOf(host)).toEqual(['ToolServerStarting']);
    await writeFile(gate, '');
    agent.llm.script = actWhenPossible;
    await agent.goOn(host, 'Act.');
    expect(codesOf(host)).toEqual(['ToolServerStarting', 'ToolServerReady']);
    expect(await readFile(`${gate}.starts`, 'utf8')).toBe('x');
  });

  it('has a limit of its own, and ends with the conversation', async () => {
    const toolbox = new McpToolbox();
    const options = toolboxOptions();
    const signal = new AbortController().signal;
    const program = { command: 'sh', args: ['-c', 'exec sleep 1000'] };
    const limited = { near: { ...program, start_timeout_seconds: 0.05 } };
    expect(await toolbox.connect(limited, options, signal)).toMatchObject([
      { code: 'McpServerUnavailable', detail: expect.stringContaining('no response within 0.05 s') },
    ]);
    expect(await toolbox.connect({ near: program }, { ...options, slowAfterMs: 1 }, signal)).toMatchObject([
      { code: 'ToolServerStarting' },
    ]);
    await toolbox.close();
    expect(await toolbox.connect({}, options, signal)).toEqual([]);
  });
});
