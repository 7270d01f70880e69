import { describe, expect, it } from '@jest/globals';
import { SecretMasker } from '../secret-masker.js';
import { CommandOutputBuffer } from './bash-commands.js';

describe('OutputBuffer', () => {
  it('masks a secret that arrives in pieces', () => {
    const masker = new SecretMasker(['my-secret']);
    const buffer = new CommandOutputBuffer(() => masker);
    const seen: string[] = [];
    for (const text of ['a '.repeat(20), 'my-', 'sec', 'ret', ' b']) {
      buffer.add('stdout', text);
      seen.push(buffer.take()?.stdout ?? '');
    }
    seen.push(buffer.takeRest().stdout ?? '');
    expect(seen.join('')).toBe(`${'a '.repeat(20)}<secret-hidden> b`);
    expect(seen.slice(0, 3)).toEqual(['a '.repeat(20), '', '']);
  });

  it.each(['stdout', 'stderr'] as const)('shows no part of a secret where %s is cut', (stream) => {
    const masker = new SecretMasker(['my-long-secret']);
    const buffer = new CommandOutputBuffer(() => masker);
    buffer.add(stream, `${'x'.repeat(3_999_992)}my-long-secret`);
    const { stdout, stderr } = buffer.takeRest();
    expect(`${stdout}${stderr}`).not.toContain('my-long');
    expect(stderr).toContain('6 further characters');
  });

  it('reports full pieces, and how much was left out', () => {
    const buffer = new CommandOutputBuffer(() => new SecretMasker([]));
    expect(buffer.add('stdout', 'x')).toBe(false);
    expect(buffer.add('stderr', 'y'.repeat(64_000))).toBe(true);
    expect(buffer.take()).toEqual({ stdout: 'x', stderr: 'y'.repeat(64_000) });
    expect(buffer.take()).toBeNull();
    buffer.add('stdout', 'z'.repeat(5_000_000));
    expect(buffer.takeRest().stderr).toContain('1064001 further characters');
  });
});
