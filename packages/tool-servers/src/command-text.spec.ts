import { describe, expect, it } from '@jest/globals';
import { argumentsFromText, variablesFromText } from './command-text.js';

describe('argumentsFromText', () => {
  it.each<[string, string[]]>([
    ['', []],
    ['  \t\n ', []],
    ['-y', ['-y']],
    ['-y  mcp-remote\thttps://mcp.example.com', ['-y', 'mcp-remote', 'https://mcp.example.com']],
    ['-y "a b"', ['-y', 'a b']],
    ["--config 'path with spaces' --debug", ['--config', 'path with spaces', '--debug']],
    ['a\'b\'c"d"e', ['abcde']],
    ['\'\' ""', ['', '']],
    ["'a\\b'", ['a\\b']],
    ['"a\\b \\" \\\\"', ['a\\b " \\']],
    ['a\\ b', ['a b']],
    ['$HOME `id` # no comment', ['$HOME', '`id`', '#', 'no', 'comment']],
    ['"two\nlines"', ['two\nlines']],
  ])('splits %j', (text, expected) => {
    expect(argumentsFromText(text)).toEqual({ value: expected, problem: null });
  });

  it.each([
    ['"x', '" is missing'],
    ["-y 'x", "' is missing"],
    ['"x\\"', '" is missing'],
    ['x\\', 'after the last backslash'],
  ])('refuses %j', (text, problem) => {
    expect(argumentsFromText(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});

describe('variablesFromText', () => {
  it.each<[string, [string, string][]]>([
    ['', []],
    [' , ', []],
    [
      'A=1,B=2',
      [
        ['A', '1'],
        ['B', '2'],
      ],
    ],
    [
      ' A = 1 , _b=x=y,',
      [
        ['A', ' 1'],
        ['_b', 'x=y'],
      ],
    ],
    ['A=', [['A', '']]],
    ['A=1,A=2', [['A', '2']]],
    ['__proto__=1', [['__proto__', '1']]],
  ])('reads %j', (text, expected) => {
    expect(variablesFromText(text)).toEqual({ value: new Map(expected), problem: null });
  });

  it.each([
    ['A', 'equals sign'],
    ['A=1,secret', 'equals sign'],
    ['=2', 'variable name'],
    ['1A=2', 'variable name'],
    ['A B=2', 'variable name'],
  ])('refuses %j without repeating it', (text, problem) => {
    expect(variablesFromText(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});
