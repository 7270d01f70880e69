import { describe, expect, it } from '@jest/globals';
import { quoteForShell } from '../../agent-server/src/tools/shell-environment.js';
import { type SandboxPromises, type SharedSandbox, startedSandbox } from './sandbox-backend.harness.js';

/** Searches the memory of every readable process for a text, given backwards. */
const SEARCH_MEMORY = `
import os, re, sys
needle = sys.argv[1].encode()[::-1]
for pid in filter(str.isdigit, os.listdir('/proc')):
    if int(pid) == os.getpid():
        continue
    try:
        maps = open(f'/proc/{pid}/maps').read()
        memory = open(f'/proc/{pid}/mem', 'rb', 0)
    except OSError:
        continue
    for line in maps.splitlines():
        found = re.match(r'([0-9a-f]+)-([0-9a-f]+) rw', line)
        if found is None:
            continue
        start, end = (int(part, 16) for part in found.groups())
        try:
            memory.seek(start)
            if needle in memory.read(min(end - start, 1 << 28)):
                print(f'found in the memory of {pid}')
        except (OSError, OverflowError, ValueError):
            pass
print('searched')
`;

/** The contract of a backend about tools that look for what is not theirs. */
export function describeSandboxIsolation(
  shared: () => SharedSandbox,
  { isolated, samePaths }: SandboxPromises,
): void {
  describe('secrets', () => {
    it('has the session key in no variable and no argument that a tool can read', async () => {
      const { client, launch } = shared();
      const look = 'env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n"; echo looked';
      const { stdout } = await client.run(look);
      expect(stdout).toContain('looked');
      expect(stdout.includes(launch.sessionKey)).toBe(false);
    });

    it('has the session key in no file that a tool can read', async () => {
      const { client, launch } = shared();
      // Two parts keep the command itself from matching.
      const [head, tail] = [launch.sessionKey.slice(0, 9), launch.sessionKey.slice(9)];
      const { stdout } = await client.run(
        `head=${head}; grep -rlF -- "\${head}${tail}" "$HOME" "$PWD" "\${TMPDIR:-/tmp}" 2>/dev/null; echo looked`,
      );
      expect(stdout).toBe('looked\n');
    });
  });

  if (!isolated) {
    return;
  }

  describe('isolation', () => {
    it('has the session key in no memory that a tool can read', async () => {
      const { client, launch } = shared();
      const reversed = launch.sessionKey.split('').toReversed().join('');
      const search = quoteForShell(SEARCH_MEMORY);
      const { stdout } = await client.run(
        `if command -v python3 >/dev/null; then python3 -c ${search} ${reversed}; else echo searched; fi`,
      );
      expect(stdout).toBe('searched\n');
    });

    it('hides what is not of the sandbox', async () => {
      const { client, harness } = shared();
      const { hidden } = harness;
      const { stdout, exitCode } = await client.run(`cat ${hidden.file}`);
      expect(exitCode).not.toBe(0);
      expect(stdout).not.toContain(hidden.text);
    });

    it('keeps a sandbox from the files of another one', async () => {
      const { client: one, harness } = shared();
      const { stdout } = await one.run('echo of-one > file; pwd');
      const folder = stdout.trim();
      const two = await startedSandbox(harness, harness.launch());
      expect((await two.run(`cat ${folder}/file`)).stdout).not.toContain('of-one');
      expect((await two.run(`ls -d ${folder}`)).exitCode === 0).toBe(samePaths);
      // Should that be possible, it is a file of its own.
      await two.run(`mkdir -p ${folder} && echo intruder >> ${folder}/file`);
      expect((await one.run('cat file')).stdout).toBe('of-one\n');
    });

    it('lets a tool write where it works and nowhere else', async () => {
      const { client } = shared();
      const write = async (file: string) => (await client.run(`echo x > ${file}`)).exitCode === 0;
      expect(await write('file')).toBe(true);
      expect(await write('"$HOME/file"')).toBe(true);
      expect(await write('/tmp/file')).toBe(true);
      expect(await write('/usr/file')).toBe(false);
      expect(await write('/etc/file')).toBe(false);
    });

    it('gives a tool no way to become more than it is', async () => {
      const { client } = shared();
      const { stdout } = await client.run('grep -E "^(CapPrm|CapEff|NoNewPrivs)" /proc/self/status; id -u');
      expect(stdout).toMatch(/^CapPrm:\t0+\nCapEff:\t0+\nNoNewPrivs:\t1\n[1-9]\d*\n$/);
    });
  });
}
