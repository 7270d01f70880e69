import { execFile } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { sendSignal, viewTree } from '@slipway/common/processes/end-processes.js';
import type { GuardedSandboxes } from '../disk-guard.js';
import type { ProcessBackendOptions } from './process.options.js';
import { sandboxMarker } from './program-command.js';
import { isProgramAlive, type ProgramRecord } from './sandbox-program.js';
import { readIfExists, SandboxFiles, sandboxIds, type SandboxPaths } from './sandbox-files.js';

const run = promisify(execFile);
/** Longer than an ordinary tree takes on a slow disk. */
const MEASURE_TIMEOUT_MS = 10_000;
const KIBIBYTE = 1024;
/** The unit of `st_blocks` (inode(7)). */
const BLOCK_BYTES = 512;
const MAX_DESCRIPTORS = 20_000;
/** A process that is just being made may slip through the first rounds. */
const FREEZE_ROUNDS = 3;

export class GuardedPrograms implements GuardedSandboxes {
  private readonly causes = new Map<string, { run: string; cause: string }>();

  constructor(
    private readonly options: Pick<ProcessBackendOptions, 'folder' | 'instanceId' | 'hostId'>,
    private readonly members: (id: string, record: ProgramRecord) => Promise<number[] | null>,
    private readonly terminate: (id: string) => Promise<void>,
  ) {}

  async running(): Promise<string[]> {
    const { folder, instanceId, hostId } = this.options;
    const ids = await sandboxIds(folder);
    const found = ids.map(async (id) => {
      const files = new SandboxFiles(folder, id);
      const [label, record] = await Promise.all([files.label(), files.program()]);
      const isOurs = label?.instanceId === instanceId && label.hostId === hostId;
      return isOurs && record !== null && isProgramAlive(record) ? [id] : [];
    });
    return (await Promise.all(found)).flat();
  }

  /** Includes deleted files that its processes hold open. Runs du of coreutils, which takes any nesting. */
  async measure(id: string): Promise<number | null> {
    const kibibytes = await this.sum(id, '-k');
    return kibibytes === null ? null : kibibytes * KIBIBYTE + (await deletedBytes(await this.pids(id)));
  }

  async countFiles(id: string): Promise<number | null> {
    return await this.sum(id, '--inodes');
  }

  private async sum(id: string, unit: '-k' | '--inodes'): Promise<number | null> {
    const { root } = new SandboxFiles(this.options.folder, id).paths;
    const output = await run('du', ['-s', unit, '-x', '--', root], {
      // Our own environment has keys, and a process shows its environment.
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' },
      timeout: MEASURE_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    })
      .then(({ stdout }) => stdout)
      // When files vanish meanwhile du fails, but still prints the sum.
      .catch((error: unknown) => jsonText(error, 'stdout') ?? '');
    const sum = /^(\d+)\s/.exec(output)?.[1];
    return sum === undefined ? null : Number(sum);
  }

  async freeze(id: string): Promise<void> {
    const seen = new Set<number>();
    for (let round = 0; round < FREEZE_ROUNDS; round += 1) {
      const found = (await this.pids(id)).filter((pid) => !seen.has(pid));
      found.forEach((pid) => {
        sendSignal(pid, 'SIGSTOP');
        seen.add(pid);
      });
      if (found.length === 0) {
        return;
      }
    }
  }

  async thaw(id: string): Promise<void> {
    (await this.pids(id)).forEach((pid) => sendSignal(pid, 'SIGCONT'));
  }

  /** The cause is kept in memory too, because a full disk may not take the file. */
  async end(id: string, cause: string): Promise<void> {
    const files = new SandboxFiles(this.options.folder, id);
    const record = await files.program();
    if (record === null) {
      return;
    }
    this.causes.set(id, { run: record.run, cause });
    await this.terminate(id);
    await files.writeCause({ run: record.run, cause }).catch(() => undefined);
  }

  /** Why this run of a program was ended; null when the guard did not end it. */
  async causeOf(paths: SandboxPaths, id: string, { run: current }: ProgramRecord): Promise<string | null> {
    const known = this.causes.get(id);
    if (known?.run === current) {
      return known.cause;
    }
    const written = parseJson(await readIfExists(paths.cause));
    return jsonText(written, 'run') === current ? jsonText(written, 'cause') : null;
  }

  forget(id: string): void {
    this.causes.delete(id);
  }

  private async pids(id: string): Promise<number[]> {
    const record = await new SandboxFiles(this.options.folder, id).program();
    if (record === null || !isProgramAlive(record)) {
      return [];
    }
    const marker = sandboxMarker(this.options.instanceId, id);
    return (
      (await this.members(id, record)) ??
      viewTree({ root: record.pid, marker, user: null })?.members.map(({ pid }) => pid) ??
      []
    );
  }
}

async function deletedBytes(pids: readonly number[]): Promise<number> {
  const found = new Map<string, number>();
  let looked = 0;
  for (const pid of pids) {
    // Processes end, and close files, meanwhile.
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const descriptor of descriptors.slice(0, MAX_DESCRIPTORS - looked)) {
      const file = await stat(`/proc/${pid}/fd/${descriptor}`).catch(() => null);
      if (file?.isFile() && file.nlink === 0) {
        found.set(`${file.dev}:${file.ino}`, file.blocks * BLOCK_BYTES);
      }
    }
    looked += descriptors.length;
    if (looked >= MAX_DESCRIPTORS) {
      break;
    }
  }
  return [...found.values()].reduce((sum, bytes) => sum + bytes, 0);
}
