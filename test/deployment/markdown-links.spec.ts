import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { githubSlug } from '../../docs/.vitepress/github-slug.js';

const ROOT = path.join(import.meta.dirname, '../..');
const BUILT = /(^|\/)(node_modules|\.data|dist|release|coverage)(\/|$)/;
const PAGES = ['**/*.md', 'docs/public/llms.txt'].flatMap((pattern) =>
  globSync(pattern, { cwd: ROOT, exclude: (name) => BUILT.test(name) }),
);

function textOf(page: string): string {
  return readFileSync(path.join(ROOT, page), 'utf8');
}

/** Without blocks and spans of code, in which brackets are no links. */
function prose(page: string): string {
  return textOf(page)
    .replaceAll(/^ *(```|~~~)[^]*?^ *\1/gm, '')
    .replaceAll(/(`+)[^`]*?\1(?!\()/g, '');
}

function anchorsOf(page: string): Set<string> {
  const headings = textOf(page)
    .replaceAll(/^ *```[^]*?^ *```/gm, '')
    .matchAll(/^#{1,6} (.*)$/gm);
  return new Set([...headings].map(([, heading = '']) => githubSlug(heading)));
}

/** What is wrong with a link, or null. */
function problemOf(page: string, link: string): string | null {
  const [name = '', anchor] = decodeURI(link).split('#');
  const target = name === '' ? page : path.join(path.dirname(page), name);
  if (!existsSync(path.join(ROOT, target))) {
    return `${page} links to ${link}, which does not exist`;
  }
  return anchor !== undefined && target.endsWith('.md') && !anchorsOf(target).has(anchor)
    ? `${page} links to ${link}, which has no such heading`
    : null;
}

describe('documents', () => {
  it('have links that lead to files and headings', () => {
    const links = PAGES.flatMap((page) =>
      [...prose(page).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, link = '']) => ({ page, link }))
        .filter(({ link }) => !/^[a-z]+:/.test(link)),
    );

    expect(links.length).toBeGreaterThan(150);
    expect(links.flatMap(({ page, link }) => problemOf(page, link) ?? [])).toEqual([]);
  });

  it('are all in llms.txt, apart from the decisions and what a page of it lists', () => {
    const listed = [...textOf('docs/public/llms.txt').matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) =>
      path.join('docs/public', link),
    );
    const pages = globSync(['*.md', 'docs/*.md', 'docs/operations/*.md'], { cwd: ROOT });

    expect(pages.filter((page) => !listed.includes(page))).toEqual(['docs/operations.md']);
  });

  it('are named as they are called, in sources and deployments too', () => {
    const files = globSync(
      ['{src,packages/*/src,test/hostile,scripts,deploy,demo,bench}/**/*.{ts,tsx,mjs,yaml,yml,md}', '*.md'],
      {
        cwd: ROOT,
        exclude: (name) => BUILT.test(name) || name === 'generated',
      },
    );
    const missing = files.flatMap((file) =>
      [...textOf(file).matchAll(/(?<![\w/.-])docs\/[\w/-]+\.md\b/g)].flatMap(([name]) =>
        existsSync(path.join(ROOT, name)) ? [] : [`${file} names ${name}`],
      ),
    );

    expect(missing).toEqual([]);
  });
});
