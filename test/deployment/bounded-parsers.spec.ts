import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';

const RULE = path.resolve(import.meta.dirname, '../../scripts/lib/bounded-parsers.mjs');
const PROGRAM = `
  import ts from 'typescript';
  import { parsesText } from ${JSON.stringify(RULE)};
  const found = JSON.parse(process.argv[1]).map((text) =>
    parsesText(ts.createSourceFile('planted.ts', text, ts.ScriptTarget.ES2023, true)));
  console.log(JSON.stringify(found));`;

const PARSES = [
  'new URLSearchParams(text);',
  'new globalThis.URLSearchParams(text);',
  'new URL(address).searchParams.get("a");',
  'const { searchParams } = new URL(address);',
  'JSON.parse(text);',
  'lines.map(JSON.parse);',
  'const { parse } = JSON;',
  'parseJson(text);',
  'await response.json<Answer>();',
  'const find = (text: string) => new RegExp(text);',
  'function find(text: string) { return RegExp(text, "i"); }',
  'text.split(/a+b/);',
  'const SEPARATOR = /a+b/g;\ntext.split(SEPARATOR);',
  "import { parse } from 'yaml';",
  "import { parse } from 'yaml/util';",
  "export { parse } from 'yaml';",
  "const { XMLParser } = await import('fast-xml-parser');",
  "const sax = require('sax');",
  "import { Parser } from 'htmlparser2';",
  "import MarkdownIt from 'markdown-it';",
  "import jmespath from 'jmespath';",
  "import { parse } from 'node:querystring';",
];

const PARSES_NOTHING = [
  'new URLSearchParams({ a: text });',
  'new URLSearchParams();',
  'const WORD = /a+b/;\nconst OTHER = new RegExp(`^${WORD.source}`);',
  'text.split(",");',
  'const SEPARATOR = ",";\ntext.split(SEPARATOR);',
  'JSON.stringify(value);',
  'response.json(body);',
  "import type { Document } from 'yaml';",
  "import { yaml } from './yaml.js';",
];

describe('the rule about parsers', () => {
  const found = (sources: string[]): boolean[] =>
    JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '-e', PROGRAM, JSON.stringify(sources)], {
        cwd: path.dirname(RULE),
        encoding: 'utf8',
      }),
    );

  it('finds each kind of parser', () => {
    const missed = found(PARSES).flatMap((isFound, index) => (isFound ? [] : [PARSES[index]]));

    expect(missed).toEqual([]);
  });

  it('finds none where nothing is parsed', () => {
    const mistaken = found(PARSES_NOTHING).flatMap((isFound, index) =>
      isFound ? [PARSES_NOTHING[index]] : [],
    );

    expect(mistaken).toEqual([]);
  });
});
