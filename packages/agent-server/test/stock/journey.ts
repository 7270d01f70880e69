import { strict as assert } from 'node:assert';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { call, say } from '../fakes/scripted-llm.answers.js';
import { type ChatRequest, ScriptedLlm } from '../fakes/scripted-llm.js';
import { EventSource } from '../../../../test/support/event-source.js';
import { startServiceProcess } from '../../../../test/support/service-process.js';
import { asProcess, asProcessOutside, inPods, START_SECONDS } from './places.js';

/* One conversation with the stock agent server: node … journey.ts process|outside PYTHON FOLDER, or kubernetes IMAGE FOLDER */

const CONVERSATIONS = '/api/v1/app-conversations';

const [kind = '', program = '', folder = ''] = process.argv.slice(2);
const PLACES = { kubernetes: inPods, outside: asProcessOutside, process: asProcess };
assert.ok(kind === 'kubernetes' || kind === 'outside' || kind === 'process', 'where?');
const place = await PLACES[kind](program, folder);
const KEY = 'sk-a-key-of-nobody-0123456789';
const dataDir = path.join(folder, 'data');
const note = (text: string) => process.stdout.write(`  ${text}\n`);

const specs = path.join(folder, 'specs.json');
await writeFile(specs, JSON.stringify([place.spec]));

/** Calls a tool for the first message, answers every other one. */
const model = await ScriptedLlm.start(
  ({ messages }: ChatRequest) => {
    const users = messages.filter(({ role }) => role === 'user').length;
    const last = messages.at(-1);
    return users === 1 && last?.role === 'user'
      ? call('terminal', { command: 'echo made by the agent | tee made.txt', security_risk: 'LOW' })
      : say(`answer to message ${users}`);
  },
  { host: place.host },
);
const service = await startServiceProcess({
  cwd: folder,
  environment: {
    DATA_DIR: dataDir,
    SANDBOX_SPECS_FILE: specs,
    OUTBOUND_ALLOWLIST: new URL(model.url).origin,
    SANDBOX_NETWORK_ALLOW: new URL(model.url).host,
    ...place.environment,
  },
});
try {
  const headers = { 'X-Session-API-Key': (await readFile(path.join(dataDir, 'api-key'), 'utf8')).trim() };
  const request = async (method: string, target: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${service.url}${target}`, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${target}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  const settle = async (
    target: string,
    done: (status: string) => boolean,
    member = 'status',
  ): Promise<unknown> => {
    const deadline = performance.now() + (START_SECONDS + 60) * 1000;
    let shown = '';
    while (performance.now() < deadline) {
      const [row] = jsonList(await request('GET', target));
      const status = jsonText(row, member) ?? 'none';
      const detail = jsonText(row, 'detail') ?? jsonText(row, 'status_detail') ?? '';
      if (`${status} ${detail}` !== shown) {
        shown = `${status} ${detail}`;
        note(shown);
      }
      if (done(status)) {
        return row;
      }
      assert.notEqual(status, 'ERROR', shown);
      await wait(200);
    }
    throw new Error(`${target} is still ${shown}`);
  };

  note('a conversation is started');
  await request('POST', '/api/settings', {
    llm_model: 'openai/scripted',
    llm_base_url: model.url,
    llm_api_key: KEY,
  });
  const task = await request('POST', CONVERSATIONS, {
    initial_message: { content: [{ type: 'text', text: 'Make a file.' }] },
  });
  const ready = await settle(
    `${CONVERSATIONS}/start-tasks?ids=${jsonText(task, 'id')}`,
    (status) => status === 'READY',
  );
  const id = jsonText(ready, 'app_conversation_id') ?? '';
  const sandbox = jsonText(ready, 'sandbox_id') ?? '';
  const events = `/api/v1/conversation/${id}/events`;

  const stream = await EventSource.connect(`${service.url}${events}/stream`, headers);
  const isAnswer = (number: number) => (event: unknown) =>
    jsonText(event, 'source') === 'agent' &&
    jsonText(jsonList(event, 'llm_message', 'content')[0], 'text') === `answer to message ${number}`;
  const untilAnswer = async (source: EventSource, number: number): Promise<void> => {
    const deadline = performance.now() + 120_000;
    while (!source.events.some(({ data }) => isAnswer(number)(data))) {
      assert.ok(performance.now() < deadline, `no answer to message ${number} came`);
      await wait(50);
    }
    note(`answer ${number} came over the stream`);
  };
  const send = (text: string) =>
    request('POST', `${CONVERSATIONS}/${id}/send-message`, { content: [{ type: 'text', text }], run: true });

  await untilAnswer(stream, 1);
  const observation = stream.events.find(({ event }) => event === 'ObservationEvent');
  assert.match(JSON.stringify(observation?.data), /made by the agent/, 'the tool really ran');
  await settle(`${CONVERSATIONS}?ids=${id}`, (status) => status === 'finished', 'execution_status');
  await send('And a second one.');
  await untilAnswer(stream, 2);
  stream.close();

  note('the sandbox is paused and resumed');
  await request('POST', `/api/v1/sandboxes/${sandbox}/pause`);
  await settle(`/api/v1/sandboxes?id=${sandbox}`, (status) => status === 'PAUSED');
  const count = Number(await request('GET', `${events}/count`));
  assert.ok(count >= stream.events.length, 'the events are there without the sandbox');
  await request('POST', `/api/v1/sandboxes/${sandbox}/resume`);
  await settle(`/api/v1/sandboxes?id=${sandbox}`, (status) => status === 'RUNNING');
  const again = await EventSource.connect(`${service.url}${events}/stream`, {
    ...headers,
    'Last-Event-ID': stream.lastId,
  });
  await send('Are you still there?');
  await untilAnswer(again, 3);
  again.close();

  const ids = [...stream.ids, ...again.ids];
  assert.deepEqual(
    ids,
    ids.map((_id, index) => index + 1),
    'no gap and no repeat over both connections',
  );
  const [conversation] = jsonList(await request('GET', `${CONVERSATIONS}?ids=${id}`));
  note(`${jsonText(conversation, 'title')}, ${ids.length} events`);
  assert.notEqual(jsonAt(conversation, 'metrics'), null, 'metrics were seen');

  const keys = new Set(model.requests.map((each) => each.headers['authorization']));
  assert.deepEqual([...keys], [`Bearer ${KEY}`], 'its model was called by the key');

  await request('DELETE', `${CONVERSATIONS}/${id}`);
  await settle(`/api/v1/sandboxes?id=${sandbox}`, (status) => status === 'none');
  note('the stock agent server works');
} finally {
  await service.stop();
  await model.close();
  await place.close();
}
