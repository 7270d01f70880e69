import { describe, expect, it } from '@jest/globals';
import { processorMs } from '../../../../../test/support/processor-time.js';
import { parseTextCalls, textOfCall } from './text-tools.js';

const TOOLS = new Map([
  ['terminal', ['command', 'timeout']],
  ['file_editor', ['command', 'path', 'file_text']],
]);

function parse(text: string) {
  const { calls, ...rest } = parseTextCalls(text, TOOLS);
  return {
    ...rest,
    calls: calls.map(({ name, arguments: args }) => [
      name,
      args.startsWith('{') ? JSON.parse(args) : 'incomplete',
    ]),
  };
}

const ls = ['terminal', { command: 'ls' }];
const LS = '<function=terminal>\n<parameter=command>ls</parameter>\n</function>';

describe('parseTextCalls', () => {
  it.each([
    ['the form that is asked for', `I look.\n${LS}`, 'I look.'],
    ['no end, as behind a stop sequence', LS.replace('</function>', ''), ''],
    ['half an end', LS.replace('</function>', '</function'), ''],
    ['no end of its value', LS.replace('</parameter>', ''), ''],
    ['everything on one line', LS.replaceAll('\n', ''), ''],
    ['marks of another form around it', `<tool_call>\n${LS}\n</tool_call>`, ''],
    ['a block of code around it', `I look.\n\`\`\`xml\n${LS}\n\`\`\``, 'I look.'],
    [
      'names as attributes',
      LS.replace('=terminal', ' name="terminal"').replace('=command', ' name="command"'),
      '',
    ],
    ['a name without a mark', LS.replace('=terminal', ' terminal'), ''],
    ['the value on a line of its own', LS.replace('>ls<', '>\nls\n<'), ''],
    ['CRLF', LS.replace('>ls<', '>\nls\n<').replaceAll('\n', '\r\n'), ''],
    ['an invented result behind it', `${LS}\nEXECUTION RESULT of [terminal]:\na.txt\n${LS}`, ''],
    ['thoughts with another call', `<think>Or ${LS.replace('ls', 'rm')}?</think>${LS}`, undefined],
  ])('takes a call with %s', (_, answer, text) => {
    const { calls, ...rest } = parse(answer);
    expect(calls).toEqual([ls]);
    expect(rest).toEqual({ text: text ?? expect.stringMatching(/^<think>.*rm.*<\/think>$/s) });
  });

  it('takes several, with words between them', () => {
    const other = LS.replace('ls', 'pwd');
    expect(parse(`First\n${LS}\nThen\n${other}\n${LS}`)).toEqual({
      text: expect.stringMatching(/^First\s+Then$/),
      calls: [ls, ['terminal', { command: 'pwd' }], ls],
    });
  });

  it.each([
    ['CDATA', '<![CDATA[ a && b ]]>'],
    ['entities', '&lt;b&gt; &amp;'],
    ['indentation and blank lines', '\n\n    indented\n\t\n\n'],
    ['an end of a parameter', 'Write </parameter> behind it.\nThen more.'],
    ['the beginning of a parameter', 'Write <parameter=x> before it.'],
    ['a whole call', `Like this:\n${LS}\nand so on\n`],
    ['two whole calls', `${LS}\n${LS}\nend`],
    ['an end of a function', '</function>\nfunction f() {}\n'],
    ['thoughts', '<think>\nnot thought\n</think>\n'],
    ['JSON', '{"a": "</parameter>"}'],
    ['marks of code', '```sh\nls\n```'],
  ])('leaves a value with %s as it is', (_, value) => {
    const args = { command: 'create', path: 'a.txt', file_text: `${value}\n` };
    expect(parse(`I write.\n${textOfCall('file_editor', args)}`)).toEqual({
      text: 'I write.',
      calls: [['file_editor', args]],
    });
  });

  it('takes a parameter whose end is missing before another one that the tool has', () => {
    const answer =
      '<function=terminal>\n<parameter=command>ls\n<parameter=timeout>3</parameter>\n</function>';
    expect(parse(answer).calls).toEqual([['terminal', { command: 'ls', timeout: '3' }]]);
  });

  it.each([
    ['in the middle of a value', '<function=file_editor>\n<parameter=file_text>\nhalf a f'],
    [
      'in the middle of a later one',
      '<function=file_editor>\n<parameter=command>create</parameter>\n<parameter=file_text>half',
    ],
  ])('runs no call that breaks off %s', (_, answer) => {
    expect(parse(answer).calls).toEqual([['file_editor', 'incomplete']]);
  });

  it.each([
    'No call at all.\n',
    'Write `<function=terminal>` to run something.',
    'The tag "<function=name>" begins a call.',
    '<think>I could write\n<function=terminal>',
    'a < b and <function> too',
  ])('finds none in %j', (text) => {
    expect(parse(text)).toEqual({ text, calls: [] });
  });

  it('takes no time for an answer that is made to take it', () => {
    const pieces = [
      '<parameter=a>',
      '<function=a>',
      '</parameter>',
      '\n<parameter=command>',
      ' \t',
      '<tool_call>',
    ];
    const took = processorMs(() => {
      pieces.forEach((piece) => parseTextCalls(`<function=terminal>\n${piece.repeat(20_000)}`, TOOLS));
    });
    expect(took).toBeLessThan(3_000);
  });
});
