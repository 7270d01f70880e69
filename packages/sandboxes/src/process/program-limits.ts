import { totalmem } from 'node:os';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { SandboxBackendError, type SandboxExit, type WarmLaunch } from '../sandbox-backend.js';
import { type CgroupLimits, type CgroupResource, Cgroups, findCgroups } from './cgroups.js';
import { type Platform, spawnIdentity } from './isolation.js';
import type { ProcessBackendOptions } from './process.options.js';

const MEBIBYTE = 1024 * 1024;
/** setrlimit's unit in POSIX shells. */
const FILE_BLOCK = 512;
/** A sandbox without a limit of its own leaves the rest to the service and the database. */
const MEMORY_SHARE = 0.75;
/** A sandbox that starts in another process of this host has its group before its record. */
const STALE_AFTER_MS = 60_000;
/** 128 + SIGKILL, which the kernel sends when a group has used up its memory. */
const KILLED_EXIT_CODE = 137;

/** One shell joins the groups, sets limits and becomes the program. Shells name the process limit `-u` or `-p`. */
const APPLY = `
files=$1 processes=$2 size=$3
shift 3
while [ "$1" != -- ]; do echo 0 >"$1" || exit 1; shift; done
shift
echo 500 2>/dev/null >/proc/self/oom_score_adj
ulimit -c 0
ulimit -n "$files" 2>/dev/null
[ "$processes" = - ] || ulimit -u "$processes" 2>/dev/null || ulimit -p "$processes" 2>/dev/null
[ "$size" = - ] || ulimit -f "$size"
exec "$@"
`;

/** Limits what one sandbox may take, by control groups where they are writable and by setrlimit(2). */
export class ProgramLimits {
  private staleSince = new Map<string, number>();

  constructor(
    private readonly options: ProcessBackendOptions['limits'],
    private readonly cgroups: Cgroups,
  ) {}

  static async detect(
    { folder, limits }: ProcessBackendOptions,
    platform: Platform,
  ): Promise<{ limits: ProgramLimits; notice: string }> {
    // A program that is spawned as another user cannot join a group of root's.
    const isJoinable = Object.keys(spawnIdentity(platform, platform.users?.first ?? null)).length === 0;
    const { cgroups, problem } = isJoinable
      ? await findCgroups(folder)
      : { cgroups: new Cgroups([]), problem: 'setpriv is not installed (package util-linux)' };
    const found = new ProgramLimits(limits, cgroups);
    return { limits: found, notice: found.notice(problem, platform.users !== null) };
  }

  holds(resource: CgroupResource): boolean {
    return this.cgroups.resources.has(resource);
  }

  /** Returns the command that precedes the program. @throws SandboxBackendError when limits fail that worked */
  async apply(launch: WarmLaunch, run: string, user: number | null): Promise<string[]> {
    const { processes, openFiles, fileMb } = this.options;
    let joins: string[];
    try {
      joins = await this.cgroups.create(groupName(launch.id, run), this.limitsOf(launch));
    } catch (error) {
      throw new SandboxBackendError(
        `The sandbox cannot be started: its limits cannot be set (${errorMessage(error)}).`,
        { cause: error },
      );
    }
    const size = fileMb === 0 ? '-' : String((fileMb * MEBIBYTE) / FILE_BLOCK);
    const numbers = [String(openFiles), user === null ? '-' : String(processes), size];
    return ['/bin/sh', '-c', APPLY, 'limits', ...numbers, ...joins, '--'];
  }

  async explain(id: string, run: string, exit: SandboxExit | null): Promise<SandboxExit | null> {
    if (exit === null || (exit.signal !== 'SIGKILL' && exit.code !== KILLED_EXIT_CODE)) {
      return exit;
    }
    const kills = await this.cgroups.memoryKills(groupName(id, run));
    return kills > 0 ? { ...exit, outOfMemory: true } : exit;
  }

  /** Pids of everything in a sandbox; null where the kernel keeps no list. */
  async members(id: string, run: string): Promise<number[] | null> {
    return this.cgroups.hierarchies.length === 0 ? null : await this.cgroups.members(groupName(id, run));
  }

  /** Lets nothing in a sandbox start another process, so that all of them can be ended. */
  async seal(id: string): Promise<void> {
    const names = await this.groupsOf(id);
    await Promise.all(names.map(async (name) => await this.cgroups.seal(name)));
  }

  /** Removes the groups of a sandbox in which nothing runs. */
  async release(id: string): Promise<void> {
    const names = await this.groupsOf(id);
    await Promise.all(names.map(async (name) => await this.cgroups.remove(name)));
  }

  /** Removes groups without a record for a minute: their service died. `now` is monotonic milliseconds. */
  async removeStale(
    currentRun: (id: string) => Promise<string | null>,
    now: number = performance.now(),
  ): Promise<void> {
    const staleSince = new Map<string, number>();
    for (const name of await this.cgroups.names()) {
      const [id = '', run = ''] = name.split('.', 2);
      if ((await currentRun(id)) === run) {
        continue;
      }
      const since = this.staleSince.get(name) ?? now;
      staleSince.set(name, since);
      if (now - since >= STALE_AFTER_MS) {
        await this.cgroups.remove(name);
      }
    }
    this.staleSince = staleSince;
  }

  private async groupsOf(id: string): Promise<string[]> {
    return (await this.cgroups.names()).filter((name) => name.startsWith(`${id}.`));
  }

  private limitsOf({ cpu, memoryMb }: Pick<WarmLaunch, 'cpu' | 'memoryMb'>): CgroupLimits {
    const { processes, cpu: defaultCpu, memoryMb: defaultMb } = this.options;
    const available = Math.min(totalmem(), process.constrainedMemory() || Number.MAX_SAFE_INTEGER);
    const memoryBytes =
      memoryMb === null
        ? Math.min(defaultMb * MEBIBYTE, Math.floor(available * MEMORY_SHARE))
        : memoryMb * MEBIBYTE;
    return { processes, memoryBytes, cpu: cpu ?? defaultCpu };
  }

  private notice(problem: string | null, hasUsers: boolean): string {
    const { openFiles, fileMb } = this.options;
    const { processes, memoryBytes, cpu } = this.limitsOf({ cpu: null, memoryMb: null });
    const all: [held: boolean, limit: string, what: string][] = [
      [this.holds('pids') || hasUsers, `${processes} processes`, 'processes'],
      [this.holds('memory'), `${Math.floor(memoryBytes / MEBIBYTE)} MB of memory`, 'memory'],
      [this.holds('cpu'), `${cpu} processors`, 'processors'],
      [true, `${openFiles} open files`, ''],
      [fileMb > 0, `files of ${fileMb} MB`, 'size of files'],
    ];
    const held = all.filter(([holds]) => holds).map(([, limit]) => limit);
    const missing = all.filter(([holds]) => !holds).map(([, , what]) => what);
    const how = this.cgroups.hierarchies.length === 0 ? '' : ` (cgroup ${this.cgroups.versions})`;
    const line = `each sandbox is limited to ${held.join(', ')}${how}`;
    return missing.length === 0
      ? line
      : `${line}; NOT LIMITED: ${missing.join(', ')}${problem === null ? '' : ` (${problem})`}`;
  }
}

/** Ids and runs have no dots. */
function groupName(id: string, run: string): string {
  return `${id}.${run}`;
}
