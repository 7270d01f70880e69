// An agent of the Agent Client Protocol without a model: the first word of a prompt tells it what to do. Variables switch
// abilities off (NO_LOAD, NO_MODELS, OLD_MODELS, NO_FORK, NEED_KEY, WITH_HTTP), and make it hostile from the start (START).
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { misbehave } from './hostile-turns.mjs';
import { RpcError, serveAgent } from './json-rpc.mjs';

const { env } = process;
const MODELS = ['small', 'large'];
const store = path.join(env.HOME ?? '/tmp', '.scripted-agent');
const sessions = new Map();

switch (env.START) {
  case 'says-why':
    // kimi-cli 1.52 does so.
    process.stdout.write('This program is no longer maintained.\n');
    process.exit(0);
    break;
  case 'dies':
    process.stderr.write('the agent has no configuration\n');
    process.exit(3);
    break;
  case 'silent':
    setInterval(() => undefined, 1_000);
    await new Promise(() => undefined);
    break;
  case 'noise':
    process.stdout.write('Welcome!\n{"level":"info"}\n[1,2]\nnull\n');
    break;
  case 'endless-noise':
    for (;;) {
      process.stdout.write(`${'x'.repeat(1_000)}\n`);
      await new Promise((resolve) => process.stdout.write('', resolve));
    }
}

const client = serveAgent({
  initialize: () => ({
    protocolVersion: env.START === 'version' ? 99 : 1,
    agentInfo: { name: env.NAME ?? 'scripted', version: '1.2.3' },
    agentCapabilities: {
      loadSession: !env.NO_LOAD,
      promptCapabilities: { image: true },
      mcpCapabilities: { http: Boolean(env.WITH_HTTP), sse: false },
      sessionCapabilities: env.NO_FORK ? {} : { fork: {} },
    },
    authMethods: env.NEED_KEY
      ? [
          { id: 'gemini-api-key', name: 'Key', description: 'Set GEMINI_API_KEY' },
          // codex-acp 0.16 of Zed has them, with a second variable by the schema (AuthEnvVar).
          { id: 'own-key', name: 'Own', vars: [{ name: 'OWN_API_KEY' }, { name: 'X', optional: true }] },
        ]
      : [],
  }),
  authenticate: ({ methodId }) => {
    env.SIGNED_IN = methodId;
    return {};
  },
  'session/new': (params) => {
    if (env.NEED_KEY && !env.SIGNED_IN) {
      throw RpcError.authRequired();
    }
    const session = newSession(params, randomUUID());
    const modes = {
      currentModeId: session.mode,
      availableModes: [
        { id: 'ask', name: 'Ask' },
        { id: 'plan', name: 'Plan' },
      ],
    };
    return { sessionId: session.id, modes, ...models(session) };
  },
  'session/load': async (params) => {
    const file = fileOf(params.sessionId);
    if (!existsSync(file)) {
      throw RpcError.resourceNotFound(params.sessionId);
    }
    const session = newSession(params, params.sessionId);
    session.told = JSON.parse(readFileSync(file, 'utf8'));
    for (const text of session.told) {
      await client.notify(
        'session/update',
        update(session, 'agent_message_chunk', {
          content: { type: 'text', text: `replay of ${String(text)}` },
        }),
      );
    }
    return models(session);
  },
  'session/fork': (params) => {
    const session = newSession(params, randomUUID());
    session.told = [...(sessions.get(params.sessionId)?.told ?? [])];
    return { sessionId: session.id };
  },
  'session/set_mode': ({ sessionId, modeId }) => {
    if (modeId === 'no-such-mode') {
      throw RpcError.invalidParams('Invalid params');
    }
    sessions.get(sessionId).mode = modeId;
    return {};
  },
  'session/set_model': ({ sessionId, modelId }) => {
    sessions.get(sessionId).model = known(modelId);
    return {};
  },
  'session/set_config_option': ({ sessionId, value }) => {
    const session = sessions.get(sessionId);
    session.model = known(value);
    return models(session);
  },
  'session/cancel': ({ sessionId }) => {
    sessions.get(sessionId)?.cancel();
  },
  'session/prompt': async (params) => {
    const session = sessions.get(params.sessionId);
    const text = params.prompt.map((block) => block.text ?? `[${block.type}]`).join('\n');
    session.cancelled = new Promise((resolve) => {
      session.cancel = resolve;
    });
    const earlier = [...session.told];
    session.told.push(text);
    mkdirSync(store, { recursive: true });
    writeFileSync(fileOf(session.id), JSON.stringify(session.told));
    const answer = await work(session, text, earlier);
    return typeof answer === 'string' ? { stopReason: answer } : answer;
  },
});

function newSession({ cwd, mcpServers }, id) {
  const session = {
    id,
    cwd,
    mcpServers,
    told: [],
    model: MODELS[0],
    mode: 'ask',
    cancel: () => undefined,
    calls: 0,
  };
  sessions.set(id, session);
  return session;
}

function fileOf(id) {
  return path.join(store, `${path.basename(id)}.json`);
}

function known(model) {
  if (!MODELS.includes(model)) {
    // All that codex-acp 2.6 says.
    throw RpcError.invalidParams('Invalid params');
  }
  return model;
}

function models({ model }) {
  if (env.NO_MODELS) {
    return {};
  }
  return env.OLD_MODELS
    ? {
        models: {
          currentModelId: model,
          availableModels: MODELS.map((modelId) => ({ modelId, name: modelId })),
        },
      }
    : {
        configOptions: [
          {
            id: 'model',
            name: 'Model',
            category: 'model',
            type: 'select',
            currentValue: model,
            options: MODELS.map((value) => ({ value, name: `The ${value} one` })),
          },
        ],
      };
}

function update({ id }, sessionUpdate, members) {
  return { sessionId: id, update: { sessionUpdate, ...members } };
}

/** Does what the prompt says, and returns why the turn ends. */
async function work(session, prompt, earlier) {
  const line = prompt.split('\n').at(-1) ?? '';
  const [command, ...words] = line.split(' ');
  const rest = words.join(' ');
  const tell = (kind, members) => client.notify('session/update', update(session, kind, members));
  const say = (text) => tell('agent_message_chunk', { content: { type: 'text', text } });
  const call = async (title, members = {}) => {
    session.calls += 1;
    const toolCallId = `call-${session.calls}`;
    await tell('tool_call', { toolCallId, title, kind: 'execute', status: 'pending', ...members });
    return toolCallId;
  };
  const end = (toolCallId, members = {}) =>
    tell('tool_call_update', { toolCallId, status: 'completed', ...members });
  const ask = async (toolCallId, members = {}, options) => {
    const { outcome } = await client.request('session/request_permission', {
      sessionId: session.id,
      toolCall: { toolCallId, ...members },
      options: options ?? [
        { optionId: 'always', name: 'Always', kind: 'allow_always' },
        { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        { optionId: 'no', name: 'No', kind: 'reject_once' },
      ],
    });
    return outcome.outcome === 'selected' ? outcome.optionId : outcome.outcome;
  };
  switch (command) {
    case 'hello':
      await say('Hello, ');
      await say('world.');
      return 'end_turn';
    case 'prompt':
      await say(JSON.stringify(prompt));
      return 'end_turn';
    case 'think':
      await tell('agent_thought_chunk', { content: { type: 'text', text: 'I think.' } });
      await call('nothing').then((id) => end(id));
      await tell('agent_thought_chunk', { content: { type: 'text', text: 'I know.' } });
      await say('So be it.');
      return 'end_turn';
    case 'plan':
      await tell('plan', {
        entries: [
          { content: 'first', status: 'completed', priority: 'high' },
          { content: 'second', status: 'in_progress', priority: 'low' },
          { content: 'third', status: 'pending', priority: 'low' },
        ],
      });
      return 'end_turn';
    case 'remember':
      await say(`I know: ${earlier.join(' | ') || 'nothing'}`);
      return 'end_turn';
    case 'tool': {
      const id = await call(rest || 'a tool', { rawInput: { command: rest, id: env.FAKE_SECRET } });
      await tell('tool_call_update', { toolCallId: id, status: 'in_progress' });
      await end(id, {
        rawOutput: { exit: 0 },
        content: [
          { type: 'content', content: { type: 'text', text: `did ${rest}` } },
          { type: 'diff', path: `${session.cwd}/a.txt`, oldText: 'a', newText: 'b' },
        ],
      });
      await say('done');
      return 'end_turn';
    }
    case 'many':
      for (let count = 0; count < Number(rest); count += 1) {
        await end(await call(`step ${count}`));
      }
      await say('made many');
      return 'end_turn';
    case 'ask': {
      const id = await call(rest, { rawInput: { command: rest } });
      const answer = await ask(id);
      if (answer === 'yes') {
        await end(id, { rawOutput: 'ran' });
        await say(`allowed: ${rest}`);
        return 'end_turn';
      }
      await end(id, { status: 'failed' });
      await say(`not allowed: ${answer}`);
      return answer === 'cancelled' ? 'cancelled' : 'end_turn';
    }
    case 'prepare': {
      // Claude Code, Qwen Code and OpenCode announce a call before its model has written what it does.
      const id = await call('Terminal', { rawInput: {} });
      await tell('tool_call_update', { toolCallId: id, title: rest, rawInput: { command: rest } });
      const rawInput = { command: rest, description: 'Runs it' };
      await tell('tool_call_update', { toolCallId: id, rawInput });
      await say(await ask(id, { rawInput, locations: [{ path: session.cwd }] }));
      return 'end_turn';
    }
    case 'messages':
      await say('No id. ');
      for (const [messageId, text] of [
        ['a', 'One, '],
        ['a', 'and more.'],
        ['b', 'Another.'],
      ]) {
        await tell('agent_message_chunk', { messageId, content: { type: 'text', text } });
      }
      return 'end_turn';
    case 'ask-two': {
      const ids = [await call('one'), await call('two')];
      const answers = await Promise.all(ids.map((id) => ask(id)));
      for (const id of ids) {
        await end(id);
      }
      await say(answers.join(' '));
      return 'end_turn';
    }
    case 'ask-unknown':
      await say(await ask('never-announced', { title: 'Read it', kind: 'read' }));
      return 'end_turn';
    case 'env':
      await say(`${rest}=${env[rest] ?? 'unset'}`);
      return 'end_turn';
    case 'session':
      await say(
        JSON.stringify({
          model: session.model,
          mode: session.mode,
          mcp: session.mcpServers,
          signedIn: env.SIGNED_IN,
        }),
      );
      return 'end_turn';
    case 'read': {
      const { content } = await client.request('fs/read_text_file', {
        sessionId: session.id,
        path: rest,
        line: 2,
        limit: 1,
      });
      await say(`read ${content}`);
      return 'end_turn';
    }
    case 'write': {
      await client.request('fs/write_text_file', {
        sessionId: session.id,
        path: words[0],
        content: words.slice(1).join(' '),
      });
      await say('written');
      return 'end_turn';
    }
    case 'refused': {
      const answer = await client.request('fs/read_text_file', { sessionId: session.id, path: rest }).then(
        () => 'read it',
        (error) => JSON.stringify(error.data ?? error.message),
      );
      await say(answer);
      return 'end_turn';
    }
    case 'shell': {
      const { terminalId } = await client.request('terminal/create', {
        sessionId: session.id,
        command: rest,
        outputByteLimit: 20,
        env: [{ name: 'GIVEN', value: 'by the agent' }],
      });
      const exit = await client.request('terminal/wait_for_exit', { sessionId: session.id, terminalId });
      const { output, truncated } = await client.request('terminal/output', {
        sessionId: session.id,
        terminalId,
      });
      await client.request('terminal/release', { sessionId: session.id, terminalId });
      await say(JSON.stringify({ ...exit, output, truncated }));
      return 'end_turn';
    }
    case 'spend':
      await tell('usage_update', {
        used: 10,
        size: 1000,
        cost: { amount: Number(words[0]), currency: words[1] ?? 'USD' },
      });
      await call('after').then((id) => end(id));
      return { stopReason: 'end_turn', usage: { inputTokens: 100, outputTokens: 20, totalTokens: 120 } };
    case 'used': {
      const [inputTokens = 0, outputTokens = 0] = words.map(Number);
      return {
        stopReason: 'end_turn',
        usage: { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
      };
    }
    case 'tokens-with-chunks': {
      const usage = { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedReadTokens: 50 };
      const chunk = { content: { type: 'text', text: '' }, _meta: { usage, durationMs: 9 } };
      await tell('agent_message_chunk', chunk);
      await tell('agent_message_chunk', chunk);
      return 'end_turn';
    }
    case 'tokens':
      return {
        stopReason: 'end_turn',
        _meta: { quota: { token_count: { input_tokens: 7, output_tokens: 3 } } },
      };
    case 'stop':
      return rest;
    case 'wait':
      await call('waiting', { status: 'in_progress' });
      await session.cancelled;
      return 'cancelled';
    default: {
      const otherwise = `you said: ${line}`;
      return await misbehave({ command, rest, session, client, tell, say, call, end, ask, otherwise });
    }
  }
}
