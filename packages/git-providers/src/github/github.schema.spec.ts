import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { buildSchema, type GraphQLSchema, parse, validate } from 'graphql';
import {
  PULL_REQUESTS_DOCUMENT,
  RECHECK_MERGEABLE_DOCUMENT,
  REPOSITORIES_AND_ISSUES_DOCUMENT,
  VIEWER_DOCUMENT,
} from './github.schema.js';

const DOCUMENTS = [
  { name: 'pull requests', ...PULL_REQUESTS_DOCUMENT },
  { name: 'repositories and issues', ...REPOSITORIES_AND_ISSUES_DOCUMENT },
  { name: 'recheck', ...RECHECK_MERGEABLE_DOCUMENT },
  { name: 'viewer', ...VIEWER_DOCUMENT },
];

describe('GitHub documents', () => {
  let schema: GraphQLSchema;

  beforeAll(() => {
    const file = path.join(
      import.meta.dirname,
      '../../../../node_modules/@octokit/graphql-schema/schema.graphql',
    );
    // GitHub's own schema repeats some fields, so it is taken as valid.
    schema = buildSchema(readFileSync(file, 'utf8'), {
      assumeValid: true,
      assumeValidSDL: true,
      noLocation: true,
    });
  });

  it.each(DOCUMENTS)("are valid on GitHub's schema: $name", ({ text, fallbackText }) => {
    for (const document of [text, fallbackText]) {
      expect(validate(schema, parse(document)).map(({ message }) => message)).toEqual([]);
    }
  });

  it('would notice a field that GitHub does not have', () => {
    expect(validate(schema, parse('{ viewer { login nickname } }'))).toHaveLength(1);
  });

  it.each(DOCUMENTS)('declare a variable for each page size: $name', ({ text, fallbackText, pageSizes }) => {
    for (const [name, size] of Object.entries(pageSizes)) {
      expect(text).toContain(`$${name}: Int = ${size}`);
      expect(fallbackText).toContain(`$${name}: Int = ${size}`);
    }
  });

  it('leave out of the fallbacks what older Enterprise Servers lack, and nothing else', () => {
    expect(linesOnlyIn(PULL_REQUESTS_DOCUMENT)).toEqual([
      'latestOpinionatedReviews(last: 10) { nodes { state } }',
    ]);
    expect(linesOnlyIn(REPOSITORIES_AND_ISSUES_DOCUMENT)).toEqual(['isMirror']);
  });
});

function linesOnlyIn({ text, fallbackText }: { text: string; fallbackText: string }): string[] {
  const kept = new Set(fallbackText.split('\n').map((line) => line.trim()));
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => !kept.has(line));
}
