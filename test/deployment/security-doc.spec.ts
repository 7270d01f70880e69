import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { configVariables } from '../../src/config/load-config.js';

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

  it('says how many bytes a tenant may store, as the configuration does', () => {
    const units = { MB: 1_000_000, GB: 1_000_000_000 };
    const told = [...text.matchAll(/\| `([A-Z_]+)`: (\d+) (MB|GB) +\|/g)].map(([, name, count, unit]) => [
      name,
      String(Number(count) * units[unit as keyof typeof units]),
    ]);
    const bounds = configVariables().filter(({ name }) => name.endsWith('_EVENT_BYTES'));
    expect(told).toEqual(bounds.map(({ name, default: usual }) => [name, usual]));
  });

  it('names every attack, and none that does not exist', () => {
    expect(attacks.filter((name) => !quoted.includes(name))).toEqual([]);
    const named = [...text.matchAll(/\battack\s+`([^`]+)`/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !attacks.includes(name))).toEqual([]);
  });
});
