// An agent of the Agent Client Protocol without a model: the first word of a prompt tells it what to do. Variables switch
// abilities off (NO_LOAD, OLD_MODELS, NO_FORK, NEED_KEY, WITH_HTTP), and make it hostile from the start (START).
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { HOSTILE_TURNS } from './hostile-turns.mjs';
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
    return typeof answer === 'object' ? answer : { stopReason: answer ?? 'end_turn' };
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

/** What a turn does by the first word of its prompt; why it ends, or its whole result, where that is not usual. */
const TURNS = {
  hello: async ({ say }) => {
    await say('Hello, ');
    await say('world.');
  },
  prompt: ({ say, prompt }) => say(JSON.stringify(prompt)),
  think: async ({ tell, say, call, end }) => {
    await tell('agent_thought_chunk', { content: { type: 'text', text: 'I think.' } });
    await end(await call('nothing'));
    await tell('agent_thought_chunk', { content: { type: 'text', text: 'I know.' } });
    await say('So be it.');
  },
  plan: ({ tell }) =>
    tell('plan', {
      entries: [
        { content: 'first', status: 'completed', priority: 'high' },
        { content: 'second', status: 'in_progress', priority: 'low' },
        { content: 'third', status: 'pending', priority: 'low' },
      ],
    }),
  remember: ({ say, earlier }) => say(`I know: ${earlier.join(' | ') || 'nothing'}`),
  tool: async ({ tell, say, call, end, rest, session }) => {
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
  },
  many: async ({ say, call, end, rest }) => {
    for (let count = 0; count < Number(rest); count += 1) {
      await end(await call(`step ${count}`));
    }
    await say('made many');
  },
  ask: async ({ say, call, end, ask, rest }) => {
    const id = await call(rest, { rawInput: { command: rest } });
    const answer = await ask(id);
    const isAllowed = answer === 'yes';
    await end(id, isAllowed ? { rawOutput: 'ran' } : { status: 'failed' });
    await say(isAllowed ? `allowed: ${rest}` : `not allowed: ${answer}`);
    return answer === 'cancelled' ? 'cancelled' : 'end_turn';
  },
  prepare: async ({ tell, say, call, ask, rest, session }) => {
    // Claude Code, Qwen Code and OpenCode announce a call before its model has written what it does.
    const id = await call('Terminal', { rawInput: {} });
    await tell('tool_call_update', { toolCallId: id, title: rest, rawInput: { command: rest } });
    const rawInput = { command: rest, description: 'Runs it' };
    await tell('tool_call_update', { toolCallId: id, rawInput });
    await say(await ask(id, { rawInput, locations: [{ path: session.cwd }] }));
  },
  messages: async ({ tell, say }) => {
    await say('No id. ');
    for (const [messageId, text] of [
      ['a', 'One, '],
      ['a', 'and more.'],
      ['b', 'Another.'],
    ]) {
      await tell('agent_message_chunk', { messageId, content: { type: 'text', text } });
    }
  },
  'ask-two': async ({ say, call, end, ask }) => {
    const ids = [await call('one'), await call('two')];
    const answers = await Promise.all(ids.map((id) => ask(id)));
    for (const id of ids) {
      await end(id);
    }
    await say(answers.join(' '));
  },
  'ask-unknown': async ({ say, ask }) =>
    say(await ask('never-announced', { title: 'Read it', kind: 'read' })),
  env: ({ say, rest }) => say(`${rest}=${env[rest] ?? 'unset'}`),
  session: ({ say, session: { model, mode, mcpServers: mcp } }) =>
    say(JSON.stringify({ model, mode, mcp, signedIn: env.SIGNED_IN })),
  read: async ({ say, request, rest }) => {
    const { content } = await request('fs/read_text_file', { path: rest, line: 2, limit: 1 });
    await say(`read ${content}`);
  },
  write: async ({ say, request, words }) => {
    await request('fs/write_text_file', { path: words[0], content: words.slice(1).join(' ') });
    await say('written');
  },
  refused: async ({ say, request, rest }) =>
    say(
      await request('fs/read_text_file', { path: rest }).then(
        () => 'read it',
        (error) => JSON.stringify(error.data ?? error.message),
      ),
    ),
  shell: async ({ say, request, rest }) => {
    const given = [{ name: 'GIVEN', value: 'by the agent' }];
    const { terminalId } = await request('terminal/create', {
      command: rest,
      outputByteLimit: 20,
      env: given,
    });
    const exit = await request('terminal/wait_for_exit', { terminalId });
    const { output, truncated } = await request('terminal/output', { terminalId });
    await request('terminal/release', { terminalId });
    await say(JSON.stringify({ ...exit, output, truncated }));
  },
  spend: async ({ tell, call, end, words: [amount, currency = 'USD'] }) => {
    await tell('usage_update', { used: 10, size: 1000, cost: { amount: Number(amount), currency } });
    await end(await call('after'));
    return { stopReason: 'end_turn', usage: { inputTokens: 100, outputTokens: 20, totalTokens: 120 } };
  },
  used: ({ words }) => {
    const [inputTokens = 0, outputTokens = 0] = words.map(Number);
    const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
    return { stopReason: 'end_turn', usage };
  },
  'tokens-with-chunks': async ({ tell }) => {
    const usage = { inputTokens: 100, outputTokens: 20, totalTokens: 120, cachedReadTokens: 50 };
    const chunk = { content: { type: 'text', text: '' }, _meta: { usage, durationMs: 9 } };
    await tell('agent_message_chunk', chunk);
    await tell('agent_message_chunk', chunk);
  },
  tokens: () => ({
    stopReason: 'end_turn',
    _meta: { quota: { token_count: { input_tokens: 7, output_tokens: 3 } } },
  }),
  stop: ({ rest }) => rest,
  wait: async ({ call, session }) => {
    await call('waiting', { status: 'in_progress' });
    await session.cancelled;
    return 'cancelled';
  },
  ...HOSTILE_TURNS,
};

async function work(session, prompt, earlier) {
  const line = prompt.split('\n').at(-1) ?? '';
  const [command, ...words] = line.split(' ');
  const rest = words.join(' ');
  const tell = (kind, members) => client.notify('session/update', update(session, kind, members));
  const say = (text) => tell('agent_message_chunk', { content: { type: 'text', text } });
  const request = (method, params) => client.request(method, { sessionId: session.id, ...params });
  const call = async (title, members = {}) => {
    session.calls += 1;
    const toolCallId = `call-${session.calls}`;
    await tell('tool_call', { toolCallId, title, kind: 'execute', status: 'pending', ...members });
    return toolCallId;
  };
  const end = (toolCallId, members = {}) =>
    tell('tool_call_update', { toolCallId, status: 'completed', ...members });
  const ask = async (toolCallId, members = {}, options) => {
    const { outcome } = await request('session/request_permission', {
      toolCall: { toolCallId, ...members },
      options: options ?? [
        { optionId: 'always', name: 'Always', kind: 'allow_always' },
        { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        { optionId: 'no', name: 'No', kind: 'reject_once' },
      ],
    });
    return outcome.outcome === 'selected' ? outcome.optionId : outcome.outcome;
  };
  const turn = TURNS[command] ?? (() => say(`you said: ${line}`));
  return await turn({ session, prompt, earlier, words, rest, tell, say, request, call, end, ask });
}
