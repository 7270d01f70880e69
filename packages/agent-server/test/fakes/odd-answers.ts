import type { AnthropicAnswer, AnthropicScript } from './scripted-anthropic.js';
import {
  call,
  calls,
  endsWith,
  fails,
  page,
  refuses,
  say,
  type ScriptedAnswer,
} from './scripted-llm.answers.js';
import { STOCK_EVENTS } from '../../../../test/fakes/stock-agent-samples.js';

type Choices<T> = readonly [T, ...T[]];

const HALF = 'x\ud83d\0';
const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';

/**
 * What models behind OpenAI's API, their servers and what stands before them send besides good answers. Some call the tools
 * of `odd-tools-server.mjs`.
 */
export const ODD_ANSWERS: Choices<ScriptedAnswer> = [
  call('functions.terminal', { command: 'true' }),
  call('größe '.repeat(20), '{"a":'),
  call('', {}),
  call('think', '[1]'),
  call('think', { thought: HALF }),
  call('think', '{"thought": "\\ud83d \\u0000"}', { id: 'x'.repeat(90) }),
  call('terminal', { command: "printf 'a\\rb\\033[31mc\\377\\000'" }),
  call('nothing', { picture: true }),
  call('optional', { size: null, picture: true }),
  calls({ name: 'think', arguments: { thought: 'a' }, id: '' }, { name: 'think', arguments: '', id: '' }),
  calls({ name: 'think', arguments: {}, id: 'same' }, { name: 'nothing', arguments: {}, id: 'same' }),
  {
    kind: 'answer',
    reasoning: HALF,
    reasoningMember: 'reasoning',
    members: { reasoning_details: [{ type: 'reasoning.text', text: HALF }] },
    calls: [{ name: 'think', arguments: {}, members: { extra_content: { signature: 'abc' } } }],
  },
  { kind: 'answer', reasoning: 'Only thoughts.' },
  { kind: 'answer', text: 'Whole.', isWhole: true },
  say(''),
  say(' \n\t'),
  say(HALF),
  say('<think>Only thoughts.'),
  endsWith('length', { text: 'half an ans' }),
  endsWith('length', { calls: [{ name: 'terminal', arguments: '{"comm' }] }),
  endsWith('content_filter', { text: 'Well' }),
  endsWith('something new', { text: 'Well' }),
  fails(401, 'wrong key'),
  fails(413),
  fails(422, 'messages.3 is odd'),
  fails(429, 'slow down', { 'retry-after': '1' }),
  fails(500),
  fails(529, 'overloaded'),
  refuses(400, { error: { message: 'messages.3: no' } }),
  refuses(400, { error: { code: 'context_length_exceeded', message: 'too long' } }),
  page('<html>Sign in</html>'),
  page('', 'application/json'),
  page('data: {}\n\ndata: nothing\n\n', 'text/event-stream'),
  { kind: 'streamError', text: 'Well', error: { message: 'upstream failed', code: 502 } },
  { kind: 'cut', text: 'Well' },
];

const USAGE = { usage: { input: 1, output: 1 } };
const used = (name: string, input: Record<string, unknown>, id = 'toolu_1'): AnthropicAnswer => ({
  call: { id, name, input },
  ...USAGE,
});
/** The same in Anthropic's format. */
export const ODD_CLAUDES: Choices<ReturnType<AnthropicScript>> = [
  used('functions.terminal', {}),
  used('think', { thought: HALF }, 'größe'),
  used('', {}, ''),
  used('nothing', { picture: true }),
  { thinking: HALF, ...used('optional', { size: 'x' }) },
  { thinking: 'Hm.', text: ' ', ...used('think', {}) },
  { thinking: 'Only thoughts.', ...USAGE },
  { text: '', ...USAGE },
  { text: HALF, ...USAGE },
  USAGE,
  { text: 'half an ans', stop: 'max_tokens', ...USAGE },
  { stop: 'max_tokens', ...used('terminal', {}) },
  { text: 'Well', stop: 'refusal', ...USAGE },
  { text: 'Well', stop: 'pause_turn', ...USAGE },
  { status: 400, message: 'messages.3: no' },
  { status: 400, message: 'prompt is too long: 200310 tokens > 200000 maximum' },
  { status: 413, message: 'too large' },
  { status: 429, message: 'slow down' },
  { status: 529, message: 'Overloaded' },
];

/** Commands for `scripted-agent.mjs`, which speaks the Agent Client Protocol. */
export const ODD_TURNS: Choices<string> = [
  'garbage',
  'collide',
  'think',
  'plan',
  'die',
  'many 3',
  'tool ls',
  'refused /etc/passwd',
  'stop max_tokens',
  'stop refusal',
  'stop something_new',
  'spend 1 EUR',
  'ask-unknown',
  `say ${HALF}`,
];

/** What users write. */
export const ODD_MESSAGES: Choices<string> = ['Go on.', ' ', HALF, '😀'.repeat(50), '\u200b'];

/** Addresses of images in users' messages. */
export const ODD_IMAGES: Choices<string> = [
  PIXEL,
  'https://127.0.0.1:9/gone.png',
  'no address',
  'data:image/png;base64,?',
];

/** Members that replace those of an event of the stock agent server. */
export const ODD_MEMBERS: Choices<Record<string, unknown>> = [
  { kind: 'EventOfTheFuture', text: HALF, 'key\0': [{ deep: HALF }] },
  { kind: '' },
  { kind: 7 },
  { id: '' },
  { id: null },
  { id: 'x'.repeat(5_000) },
  { id: 'twice' },
  { timestamp: 'yesterday' },
  { timestamp: null },
  { timestamp: '+275760-01-01T00:00:00Z' },
  { source: null, llm_message: null },
  { llm_message: { role: 'assistant', content: HALF } },
  { text: 'x'.repeat(2_000_000) },
  ...Object.values(STOCK_EVENTS),
];
