import { afterEach, expect, it } from '@jest/globals';
import { NativeEngine } from '../../src/engine/native/native.engine.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { inOrder, ScriptedLlm } from '../fakes/scripted-llm.js';
import { startWithModelAt } from '../support/agent-server-client.js';
import { startTestAgentServer, type TestAgentServer } from '../support/test-agent-server.js';

// https://github.com/anthropics/claude-code/issues/56064: half an emoji in the log, and no request is accepted any more.

let server: TestAgentServer;
let llm: ScriptedLlm;

afterEach(async () => {
  await server.stop();
  await llm.close();
});

it.each([14_998, 14_999, 15_000])(
  'cuts output between characters: an emoji after %d others',
  async (before) => {
    const xs = `head -c ${before} /dev/zero | tr '\\0' x`;
    const ys = `head -c 20000 /dev/zero | tr '\\0' y`;
    llm = await ScriptedLlm.start(
      inOrder(call('terminal', { command: `${xs}; printf '😀'; ${ys}` }), say('Done.')),
    );
    server = await startTestAgentServer({ createEngine: async () => new NativeEngine() });
    const id = await server.client.start(startWithModelAt(llm.url));
    await server.client.say(id, 'Do it.');
    await server.client.untilStatus(id, 'finished');
    const events = JSON.stringify(await server.client.events(id, '&kind=ObservationEvent'));
    expect(llm.refusals).toEqual([]);
    expect(events).toContain('characters left out');
    expect(events).not.toMatch(/\\ud[89a-f]|\u{fffd}/iu);
  },
);
