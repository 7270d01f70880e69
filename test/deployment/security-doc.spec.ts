import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = path.join(import.meta.dirname, '../..');
const text = readFileSync(path.join(ROOT, 'SECURITY.md'), 'utf8');
const attacks = readdirSync(path.join(ROOT, 'test/hostile/attacks')).map((name) =>
  name.replace('.attack.ts', ''),
);
const quoted = [...text.matchAll(/`([^`\s]+)`/g)].map(([, word = '']) => word);

describe('SECURITY.md', () => {
  it('names files that exist', () => {
    const files = quoted.filter((word) => /^(src|packages|test|docs)\//.test(word));
    expect(files.length).toBeGreaterThan(10);
    expect(files.filter((file) => !existsSync(path.join(ROOT, file)))).toEqual([]);
  });

  it('names every attack, and none that does not exist', () => {
    expect(attacks.filter((name) => !quoted.includes(name))).toEqual([]);
    const named = [...text.matchAll(/\battack\s+`([^`]+)`/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !attacks.includes(name))).toEqual([]);
  });
});
