import { describe, expect, it } from '@jest/globals';
import { evaluate, expressionProblem, isTruthy } from './jmespath.js';

const ISSUE = {
  action: 'labeled',
  label: { name: 'agent' },
  issue: {
    number: 7,
    user: { login: 'ada' },
    labels: [{ name: 'agent' }, { name: 'bug' }],
    body: 'Hello @Slipway!',
  },
  repository: { full_name: 'octo/app' },
};

/** Thousands of elements that are one object. */
const DOUBLED = '[@,@,@,@,@,@,@,@]|[*].[@,@,@,@,@,@,@,@]|[]|[*].[@,@,@,@,@,@,@,@]|[]';

describe('a filter', () => {
  it.each([
    ["label.name == 'agent'", true],
    ["label.name != 'agent'", false],
    ["contains(issue.labels[].name, 'bug')", true],
    ["issue.labels[?name == 'bug'] | [0].name", true],
    ["icontains(issue.body, '@slipway')", true],
    ["icontains(comment.body, '@slipway')", false],
    ["mentions(issue.body, 'slipway')", true],
    ["mentions(issue.body, 'other')", false],
    ["mentions(comment.body, 'slipway')", false],
    ["regex(issue.body, '(?i)^hello @\\w+')", true],
    ["regex(issue.body, 'lo$')", false],
    ["regex(comment.body, '.')", false],
    ["glob(repository.full_name, 'octo/*')", true],
    ["glob(repository.full_name, 'octo/?')", false],
    ["starts_with(repository.full_name, 'octo') && !pull_request", true],
    ['issue.number > `6` && issue.number <= `7`', true],
    ["lower(issue.user.login) == 'ada' || `false`", true],
    ['length(issue.labels) == `2`', true],
    ["{a: label.name}.a == 'agent'", true],
    ["not_null(missing, label.name) == 'agent'", true],
    ["to_string(issue.number) == '7'", true],
    ["join('-', issue.labels[*].name) == 'agent-bug'", true],
    ["contains(label.*, 'agent')", true],
    ['issue.labels.*', false],
    ['label[*]', false],
    ['constructor', false],
    ['__proto__', false],
    ['issue.labels[-1:].name | [0]', true],
    ["type(issue) == 'object' && contains(keys(issue), 'body')", true],
  ])('%s is %s', (filter, expected) => {
    expect(expressionProblem(filter)).toBeNull();
    expect(isTruthy(evaluate(filter, ISSUE))).toBe(expected);
  });

  it.each([
    'a ==',
    'exec(a)',
    'contains(a)',
    'regex(a)',
    "regex(a, '(')",
    "regex(a, '(?=b)')",
    "regex(a, '((a{90}){90}){90}')",
    'sort_by(a, &b)',
    'a'.repeat(1_001),
    '((((',
    '`{`',
    '',
  ])('may not be %s', (filter) => {
    expect(expressionProblem(filter)).toContain('JMESPath');
  });

  it('that the parser has no words for is refused with an example', () => {
    expect(expressionProblem('label.name = agent')).toMatch(/cannot be read; label\.name == 'agent'/);
  });

  it.each([
    ['doubling', `@${' | [@, @]'.repeat(60)}`],
    ['doubling and flattening', `[@]${' | [@, @][]'.repeat(60)}`],
    ['doubling a comparison', `[@${' | [@, @]'.repeat(40)}] == [@${' | [@, @]'.repeat(40)}]`],
    ['escaping again and again', 'to_string([@])'.padStart(14) + ' | to_string([@])'.repeat(50)],
  ])('that grows by %s ends soon', (_what, filter) => {
    expect(expressionProblem(filter)).toBeNull();
    expect(() => evaluate(filter, { a: '"\\'.repeat(1_000) })).toThrow('takes too long');
  });

  it.each([
    ['looks again and again whether a large object is empty', `${DOUBLED}|[?a]|[0].b`],
    ['searches for a text that nearly matches everywhere', 'contains(text, part)'],
    ['searches for it in any case', 'icontains(text, part)'],
    ['looks for a pattern of many parts', "regex(text, '(?:a{1,20}b?){1,40}c')"],
    ['takes its pattern from the event', 'regex(text, part)'],
    ['looks for many mentions', `[${"mentions(text, 'a'),".repeat(12)}a]`],
  ])('that %s ends soon', (_what, filter) => {
    const members = Array.from({ length: 1_000 }, (_none, index) => [`k${index}`, index]);
    const half = 'a'.repeat(100_000);
    const payload = { a: Object.fromEntries(members), text: half.repeat(4), part: `${half}b${half}` };
    expect(() => evaluate(filter, payload)).toThrow(/takes too long|at most 1000 characters/);
  });

  it('with a pattern of many stars ends soon', () => {
    expect(() => evaluate(`glob(a, '${'*a'.repeat(400)}b')`, { a: 'a'.repeat(900_000) })).toThrow(
      'takes too long',
    );
  });
});
