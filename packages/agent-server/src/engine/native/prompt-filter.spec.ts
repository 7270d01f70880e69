import { describe, expect, it } from '@jest/globals';
import type { ModelMessage } from 'ai';
import type { ModelTarget } from './prompt-limits.js';
import { filterPrompt, googleSchema } from './prompt-filter.js';

const OPENAI: ModelTarget = { api: 'openai', baseUrl: 'https://api.openai.com/v1', model: 'gpt' };
const ANTHROPIC: ModelTarget = { api: 'anthropic', baseUrl: null, model: 'claude' };
const MISTRAL: ModelTarget = { api: 'openai', baseUrl: 'https://api.mistral.ai/v1', model: 'devstral' };
const GEMINI: ModelTarget = {
  api: 'openai',
  baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
  model: 'gemini',
};

const user = (text: string): ModelMessage => ({ role: 'user', content: text });
const assistant = (text: string): ModelMessage => ({ role: 'assistant', content: text });
const call = (toolCallId: string, input: unknown = {}, toolName = 'think') =>
  ({ type: 'tool-call', toolCallId, toolName, input }) as const;
const calling = (...content: ReturnType<typeof call>[]): ModelMessage => ({ role: 'assistant', content });
const answered = (...content: ReturnType<typeof result>[]): ModelMessage => ({ role: 'tool', content });
const result = (toolCallId: string, value = 'ok') =>
  ({ type: 'tool-result', toolCallId, toolName: 'think', output: { type: 'text', value } }) as const;

/** The beginnings of a PNG, a GIF, a JPEG and three forms of WebP, the last two of which have 8,001 pixels in height. */
const images = (height: number): string[] => {
  const big = height.toString(16).padStart(4, '0');
  const little = `${big.slice(2)}${big.slice(0, 2)}`;
  return [
    `89504e470d0a1a0a0000000d494844520000000a0000${big}`,
    `4749463839610a00${little}`,
    `ffd8ffe000040000ffc0001108${big}000a`,
    `52494646000000005745425056503820000000000000009d012a0a00${little}`,
    '5249464600000000574542505650385800000000000000000a0000401f00',
    '5249464600000000574542505650384c000000002f0900d007',
  ].map((hex) => `data:image/png;base64,${Buffer.from(hex.padEnd(84, '0'), 'hex').toString('base64')}`);
};

function filtered(messages: ModelMessage[], target = OPENAI): ModelMessage[] {
  return filterPrompt({ instructions: 'Be good.', messages, tools: [] }, target).messages;
}

describe('filterPrompt', () => {
  it('changes nothing in a prompt that is right', () => {
    const messages: ModelMessage[] = [
      user('do it'),
      {
        role: 'assistant',
        content: [{ type: 'text', text: 'I think.' }, call('functions.think:0', { thought: 'ä' })],
      },
      answered(result('functions.think:0')),
      { role: 'assistant', content: [{ type: 'text', text: 'Done.' }] },
      user('more'),
    ];
    expect(filtered(messages)).toEqual(messages);
  });

  it.each<[string, ModelMessage[], ModelMessage[]]>([
    ['no messages', [], [user('(The beginning of this conversation was left out.)')]],
    ['blank messages', [user(' \n'), user('a'), assistant('\u00a0')], [user('a')]],
    ['half characters and NUL', [user('a\ud83d\0b')], [user('a\u{fffd}\u{fffd}b')]],
    [
      'a response at the end',
      [user('a'), assistant('b')],
      [user('a'), { role: 'assistant', content: [{ type: 'text', text: 'b' }] }, user('Go on.')],
    ],
    ['a result without a call', [user('a'), answered(result('x'))], [user('a')]],
    [
      'a call without a result, and one with two',
      [user('a'), calling(call('x'), call('y')), answered(result('y', 'first'), result('y', 'second'))],
      [
        user('a'),
        calling(call('x'), call('y')),
        {
          role: 'tool',
          content: [
            {
              ...result('x'),
              output: {
                type: 'error-text',
                value: 'The call was interrupted; whether it had an effect is not known.',
              },
            },
            result('y', 'first'),
          ],
        },
      ],
    ],
    [
      'odd arguments, names and results',
      [user('a'), calling(call('x', { 'a\0': ['\ud83d'] }, 'functions.think')), answered(result('x', ' '))],
      [
        user('a'),
        calling(call('x', { 'a\u{fffd}': ['\u{fffd}'] }, 'functions_think')),
        { role: 'tool', content: [{ ...result('x', '(no output)'), toolName: 'functions_think' }] },
      ],
    ],
    [
      'reasoning alone',
      [user('a'), { role: 'assistant', content: [{ type: 'reasoning', text: 'hm' }] }],
      [user('a')],
    ],
  ])('repairs %s', (_, messages, expected) => {
    expect(filtered(messages)).toEqual(expected);
  });

  it.each<[string, ModelTarget, string, RegExp]>([
    ['too long', OPENAI, 'x'.repeat(41), /^[0-9a-f]{9}$/],
    ['empty', OPENAI, '', /^[0-9a-f]{9}$/],
    ['of Kimi, for Anthropic', ANTHROPIC, 'functions.think:0', /^[0-9a-f]{9}$/],
    ['of Anthropic', ANTHROPIC, 'toolu_01A-b', /^toolu_01A-b$/],
    ['of OpenAI, for Mistral', MISTRAL, 'call_abc', /^[0-9a-f]{9}$/],
    ['of Mistral', MISTRAL, 'aB3dE6gH9', /^aB3dE6gH9$/],
  ])('gives a call a valid id, always the same: one that is %s', (_, target, id, expected) => {
    const messages: ModelMessage[] = [
      user('a'),
      calling(call(id), call(id)),
      answered(result(id, 'one'), result(id, 'two')),
    ];
    const [, response, results] = filtered(messages, target);
    const ids = JSON.stringify([response, results]).match(/(?<="toolCallId":")[^"]*/g) ?? [];
    expect(ids[0]).toMatch(expected);
    expect(ids).toEqual([ids[0], ids[1], ids[0], ids[1]]);
    expect(ids[0]).not.toBe(ids[1]);
    expect(filtered(messages, target)).toEqual(filtered(messages, target));
  });

  it('makes one message of several where a template insists on it', () => {
    const messages = [user('a'), user('b')];
    expect(filtered(messages)).toEqual(messages);
    expect(filtered(messages, MISTRAL)).toEqual([user('a\n\nb')]);
  });

  it('answers for the agent between a tool and the user where a template insists on it', () => {
    const messages: ModelMessage[] = [
      user('a'),
      calling(call('aB3dE6gH9')),
      answered(result('aB3dE6gH9')),
      user('b'),
    ];
    expect(filtered(messages)).toHaveLength(4);
    expect(filtered(messages, MISTRAL)[3]).toEqual({
      role: 'assistant',
      content: [{ type: 'text', text: 'Done.' }],
    });
  });

  it("marks another model's calls for Gemini, and keeps its own signatures", () => {
    const signed = { openaiCompatible: { extra_content: { google: { thought_signature: 'signed' } } } };
    const messages: ModelMessage[] = [
      user('a'),
      { role: 'assistant', content: [call('x'), { ...call('y'), providerOptions: signed }] },
      answered(result('x'), result('y')),
    ];
    const text = JSON.stringify(filtered(messages, GEMINI)[1]);
    expect(text.match(/(?<="thought_signature":")[^"]*/g)).toEqual([
      'skip_thought_signature_validator',
      'signed',
    ]);
    expect(JSON.stringify(filtered(messages)[1])).not.toContain('skip_thought');
  });

  type Row = [string, ModelTarget, string, string | null];
  it.each<Row>([
    ['a picture', ANTHROPIC, 'data:image/png;base64,iVBORw0KGgo=', null],
    ['an address', ANTHROPIC, 'https://example.com/a.png', null],
    ['an address without TLS', OPENAI, 'http://example.com/a.png', null],
    ['one that Anthropic does not load', ANTHROPIC, 'http://example.com/a.png', 'https addresses only'],
    ['no address', OPENAI, 'no address', 'its address cannot be loaded'],
    ['a file', OPENAI, 'file:///etc/passwd', 'its address cannot be loaded'],
    ['damage', OPENAI, 'data:image/png;base64,a', 'its data is damaged'],
    ['a text', OPENAI, 'data:image/png;base64,aGFsbG8=', 'it is no PNG'],
    ['too much', OPENAI, `data:image/png;base64,iVBORw0KGgoA${'A'.repeat(7_000_000)}`, 'larger than 5 MiB'],
    // NousResearch/hermes-agent#37677: each later request is refused.
    ...images(8_001).map((url): Row => ['many pixels', ANTHROPIC, url, 'more than 8000 pixels']),
    ['many pixels for another model', OPENAI, images(8_001)[0] ?? '', null],
  ])('lets images pass, with notes in place of what cannot be loaded: %s', (_, target, url, note) => {
    const [message] = filtered(
      [{ role: 'user', content: [{ type: 'file', mediaType: 'image', data: url }] }],
      target,
    );
    expect(JSON.stringify(message)).toContain(note ?? '"type":"file"');
  });

  it('corrects the type of an image', () => {
    const image = { type: 'file', mediaType: 'image', data: 'data:image/png;base64,/9j/AAAA' } as const;
    expect(filtered([{ role: 'user', content: [image] }])).toMatchObject([
      { content: [{ mediaType: 'image/jpeg', data: new URL('data:image/jpeg;base64,/9j/AAAA') }] },
    ]);
  });

  // anthropics/claude-code#46656
  it('keeps only smaller images where Claude is shown more than twenty', () => {
    const image = { type: 'file', mediaType: 'image', data: images(2_001)[0] ?? '' } as const;
    const shown = (count: number): string =>
      JSON.stringify(
        filtered([{ role: 'user', content: Array.from({ length: count }, () => image) }], ANTHROPIC),
      );
    expect([20, 21].map((count) => shown(count).includes('more than 2000 pixels'))).toEqual([false, true]);
  });

  it('keeps the newest images where there are too many', () => {
    const image = { type: 'file', mediaType: 'image', data: 'https://example.com/a.png' } as const;
    const messages = filtered([
      { role: 'user', content: Array.from({ length: 50 }, () => image) },
      { role: 'user', content: [image] },
    ]);
    expect(JSON.stringify(messages).match(/there are too many/g)).toHaveLength(1);
  });

  it('offers tools with valid, unique names, and descriptions as long as the server takes', () => {
    const tool = { name: 'a b', description: '😀'.repeat(600), inputSchema: {} };
    const offer = (target: ModelTarget) =>
      filterPrompt({ instructions: ' ', messages: [], tools: [tool, { ...tool, name: 'a_b' }] }, target);
    expect(offer(OPENAI).instructions).toBeUndefined();
    expect(offer(OPENAI).tools).toEqual([
      { name: 'a_b', description: '😀'.repeat(512), inputSchema: { type: 'object', properties: {} } },
    ]);
    expect(offer(ANTHROPIC).tools[0]?.description).toBe(tool.description);
  });
});

const NOTHING = { type: 'object', properties: {} };
const TEXT = { type: 'string' };

it.each([
  ['closed objects', { ...NOTHING, additionalProperties: false }, NOTHING],
  [
    'numbers to choose from',
    { type: 'integer', enum: [1, 2] },
    { type: 'integer', description: 'One of 1, 2.' },
  ],
  ['texts to choose from', { enum: ['a', 'b'] }, { type: 'string', enum: ['a', 'b'] }],
  ['an empty text to choose', { enum: ['', 'b'], description: 'x' }, { description: 'x One of "", "b".' }],
  ['formats', { type: 'string', format: 'uri' }, { type: 'string', description: 'Format: uri.' }],
  ['limits', { minimum: 1, exclusiveMaximum: 3, multipleOf: 2, default: 1 }, { minimum: 1 }],
  [
    'what applies together',
    { allOf: [TEXT, { minLength: 1 }], maxLength: 2 },
    { ...TEXT, minLength: 1, maxLength: 2 },
  ],
  [
    'inner schemas',
    { type: 'array', items: { anyOf: [{ ...NOTHING, default: {} }, TEXT] } },
    { type: 'array', items: { anyOf: [NOTHING, TEXT] } },
  ],
])('googleSchema knows %s as Google does', (_, schema, expected) => {
  expect(googleSchema(schema)).toEqual(expected);
});
