import { AcpEngine } from '../src/engine/acp/acp.engine.js';
import { NativeEngine } from '../src/engine/native/native.engine.js';
import { toolEnvironment } from '../src/tool-view.js';
import { engineSettings, MemoryEngineHost, scriptedAgent } from './fakes/memory-engine-host.js';
import { call, say } from './fakes/scripted-llm.answers.js';
import { ScriptedLlm } from './fakes/scripted-llm.js';
import { temporaryFolder } from '../../../test/support/temporary-folder.js';
import { describeAgentEngine } from './agent-engine.contract.js';

const folder = temporaryFolder();
const MESSAGES = { answer: 'hello', call: 'ask rm', hang: 'wait', endless: 'many 1000' };

describeAgentEngine('native', async () => {
  const llm = await ScriptedLlm.start(({ messages, index }) => {
    const last = messages.findLast(({ role }) => role === 'user');
    const asked = JSON.stringify(last?.content ?? '');
    const isAnswered = messages.at(-1)?.role === 'tool';
    if (asked.includes(MESSAGES.endless)) {
      return call('terminal', { command: `echo ${index}` });
    }
    if (isAnswered || asked.includes(MESSAGES.answer)) {
      return say('Done.');
    }
    return call('terminal', { command: asked.includes(MESSAGES.hang) ? 'sleep 1000' : 'echo ran' });
  });
  return {
    createEngine: () => new NativeEngine(),
    createHost: (changes) => new MemoryEngineHost(engineSettings(folder(), llm.url, changes)),
    messages: MESSAGES,
    close: async () => await llm.close(),
  };
});

describeAgentEngine('acp', async () => {
  return {
    createEngine: () => new AcpEngine({ environment: toolEnvironment(process.env), wrapper: [] }),
    createHost: (changes) =>
      new MemoryEngineHost(
        engineSettings(folder(), 'http://127.0.0.1:9', { acp: scriptedAgent(folder()), ...changes }),
      ),
    messages: MESSAGES,
    close: async () => undefined,
  };
});
