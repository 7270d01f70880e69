import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import ts from 'typescript';

const ROOT = path.join(__dirname, '..', '..');
const PARAMETER = '{}';

const document = JSON.parse(readFileSync(path.join(ROOT, 'openapi.json'), 'utf8')) as OpenAPIObject;
const deprecated = new Set(
  Object.entries(document.paths)
    .filter(([, item]) => Object.values(item).some((operation) => operation.deprecated === true))
    .map(([address]) => address.replaceAll(/\{\w+\}/g, PARAMETER)),
);

/** Texts of a source file that name a path, with a placeholder for each value in them. */
function pathsIn(name: string, text: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node)) {
      found.push(node.text.replaceAll(/\{\w+\}/g, PARAMETER));
    } else if (ts.isTemplateExpression(node)) {
      const rest = node.templateSpans.map(({ literal }) => PARAMETER + literal.text);
      found.push([node.head.text, ...rest].join(''));
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(name, text, ts.ScriptTarget.ES2023));
  return found.filter((each) => each.startsWith('/')).map((each) => each.replace(/\?.*$/, ''));
}

/**
 * The flat form of what the organization shares (`?scope=organization`) is at this address alone: that of the user is at
 * `/api/v1/users/me`, and the nested form of `/api/v1/settings` does not tell a default from a value that was set.
 */
const NOT_REPLACED = ['/api/settings'];

describe('deprecated operations', () => {
  it.each<[string, string[]]>([
    ['packages/console/src', NOT_REPLACED],
    ['src/cli', []],
  ])('are not called by %s', (folder, expected) => {
    const calls = globSync('**/*.{ts,tsx}', { cwd: path.join(ROOT, folder) })
      .filter((name) => !name.endsWith('.spec.ts'))
      .flatMap((name) => pathsIn(name, readFileSync(path.join(ROOT, folder, name), 'utf8')));

    expect(calls).toContainEqual(expect.stringMatching(/^\/api\/v1\//));
    expect(calls.filter((each) => deprecated.has(each))).toEqual(expected);
  });

  it('are found where a caller names them', () => {
    const source =
      "get('/api/settings'); get(`/api/conversations/${id}?full=true`); get('/api/v1/settings');";

    expect(pathsIn('caller.ts', source).filter((each) => deprecated.has(each))).toEqual([
      '/api/settings',
      '/api/conversations/{}',
    ]);
  });
});
