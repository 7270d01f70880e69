import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorCode, errorMessage } from '@slipway/common/errors/error-message.js';

/** What the kernel can limit for a group of processes. */
export const CGROUP_RESOURCES = ['pids', 'memory', 'cpu'] as const;
export type CgroupResource = (typeof CGROUP_RESOURCES)[number];

/** Limits of one group. */
export interface CgroupLimits {
  /** Processes and threads. */
  processes: number;
  memoryBytes: number;
  /** Processors; may have a fraction. */
  cpu: number;
}

/** A hierarchy of control groups that we may write to, and the folder in it that holds the groups of sandboxes. */
export interface Hierarchy {
  version: 1 | 2;
  resources: CgroupResource[];
  folder: string;
}

/** Where the kernel says what is mounted, and which groups we are in. */
export interface CgroupSources {
  /** Text of `/proc/self/mountinfo`. */
  mounts: string;
  /** Text of `/proc/self/cgroup`. */
  membership: string;
}

const MAX_ATTEMPTS = 5;
const PERIOD_US = 100_000;
/** Share of the remaining processor time. The default is 1024 (v1) or 100 (v2), so the service goes first. */
const SHARES = { 1: '512', 2: '50' } as const;
/** Takes the processes of our own group, where a group that has groups below it may hold none itself. */
const OWN_LEAF = 'slipway-service';

/** The control groups of sandboxes (cgroups(7)), one for each start of a program. */
export class Cgroups {
  constructor(readonly hierarchies: readonly Hierarchy[]) {}

  /** Which limits hold. */
  get resources(): ReadonlySet<CgroupResource> {
    return new Set(this.hierarchies.flatMap(({ resources }) => resources));
  }

  /** `v1`, `v2` or both. */
  get versions(): string {
    return [...new Set(this.hierarchies.map(({ version }) => `v${version}`))].toSorted().join(' and ');
  }

  /**
   * Creates the group of a program that is about to start.
   *
   * @returns the files that a process writes `0` to in order to join it
   */
  async create(name: string, limits: CgroupLimits): Promise<string[]> {
    return await Promise.all(
      this.hierarchies.map(async (hierarchy) => {
        const { version, resources, folder } = hierarchy;
        const group = path.join(folder, name);
        await makeGroup(hierarchy, group);
        for (const [file, text, required] of resources.flatMap((resource) =>
          settings[version](resource, limits),
        )) {
          try {
            await writeFile(path.join(group, file), text);
          } catch (error) {
            if (required) {
              throw error;
            }
          }
        }
        return path.join(group, 'cgroup.procs');
      }),
    );
  }

  /** How many processes of a group the kernel has killed for their memory. */
  async memoryKills(name: string): Promise<number> {
    const hierarchy = this.hierarchies.find(({ resources }) => resources.includes('memory'));
    if (hierarchy === undefined) {
      return 0;
    }
    const file = hierarchy.version === 1 ? 'memory.oom_control' : 'memory.events';
    const text = await readIfThere(path.join(hierarchy.folder, name, file));
    return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
  }

  /** Lets no process of a group start another one, so that all of them can be ended. */
  async seal(name: string): Promise<void> {
    const hierarchy = this.hierarchies.find(({ resources }) => resources.includes('pids'));
    if (hierarchy !== undefined) {
      await writeFile(path.join(hierarchy.folder, name, 'pids.max'), '0').catch(ignoreGone);
    }
  }

  /** Pids of a group, as seen from here. */
  async members(name: string): Promise<number[]> {
    const [hierarchy] = this.hierarchies;
    const text =
      hierarchy === undefined ? '' : await readIfThere(path.join(hierarchy.folder, name, 'cgroup.procs'));
    return text.split('\n').filter(Boolean).map(Number);
  }

  /** Names of all groups, also of those that an earlier service left. */
  async names(): Promise<string[]> {
    const found = await Promise.all(
      this.hierarchies.map(
        async ({ folder }) => await readdir(folder, { withFileTypes: true }).catch(() => []),
      ),
    );
    return [...new Set(found.flat().flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])))];
  }

  /** Removes a group, and what its processes made below it. A group with processes stays; the last one takes our folder along. */
  async remove(name: string): Promise<void> {
    await Promise.all(
      this.hierarchies.map(async ({ folder }) => {
        await removeGroup(path.join(folder, name));
        await rmdir(folder).catch(ignoreGone);
      }),
    );
  }
}

/**
 * Finds the control groups that can be written, by making the folder of our sandboxes there. It comes and goes with them.
 *
 * @param owner groups of the same owner are found again
 * @returns what can be used, and why nothing else can, in words for the log
 */
export async function findCgroups(
  owner: string,
  sources?: CgroupSources,
): Promise<{ cgroups: Cgroups; problem: string | null }> {
  const name = `slipway-${createHash('sha256').update(owner).digest('hex').slice(0, 12)}`;
  const places = cgroupPlaces(
    sources ?? {
      mounts: await readIfThere('/proc/self/mountinfo'),
      membership: await readIfThere('/proc/self/cgroup'),
    },
  );
  const hierarchies: Hierarchy[] = [];
  const problems: string[] = [];
  for (const place of places) {
    try {
      const hierarchy = await (place.version === 1 ? openFirst(place, name) : openSecond(place, name));
      hierarchies.push(...(hierarchy.resources.length === 0 ? [] : [hierarchy]));
      await rmdir(hierarchy.folder).catch(ignoreGone);
    } catch (error) {
      problems.push(errorMessage(error));
    }
  }
  const [problem = places.length === 0 ? 'no cgroups are mounted' : null] = problems;
  return { cgroups: new Cgroups(hierarchies), problem };
}

/** A mounted hierarchy. */
interface CgroupPlace {
  version: 1 | 2;
  /** Of a first-version hierarchy; a second-version one says them in a file. */
  resources: CgroupResource[];
  /** Where it is mounted. */
  root: string;
  /** The group that we are in. */
  own: string;
}

/** Reads which hierarchies are mounted (proc(5), `/proc/PID/mountinfo`) and where we are in them. */
export function cgroupPlaces({ mounts, membership }: CgroupSources): CgroupPlace[] {
  const memberships = membership.split('\n').flatMap((line) => {
    const found = /^\d+:([^:]*):(.*)$/.exec(line);
    return found === null ? [] : [{ controllers: (found[1] ?? '').split(','), group: found[2] ?? '/' }];
  });
  return mounts.split('\n').flatMap((line): CgroupPlace[] => {
    const [before = '', after = ''] = line.split(' - ', 2);
    const [, , , inside = '/', root = ''] = before.split(' ').map(unescapeMount);
    const [type, , options = ''] = after.split(' ');
    const flags = options.split(',');
    const resources = CGROUP_RESOURCES.filter((resource) => flags.includes(resource));
    if (type !== 'cgroup2' && (type !== 'cgroup' || resources.length === 0)) {
      return [];
    }
    const version = type === 'cgroup' ? 1 : 2;
    const group =
      memberships.find(({ controllers }) => controllers.includes(version === 2 ? '' : (resources[0] ?? '')))
        ?.group ?? '/';
    return [{ version, resources, root, own: path.resolve(root, `.${insideMount(group, inside)}`) }];
  });
}

/** A group's path below what is mounted: a container may see a part of the tree, and its own group by the whole path. */
function insideMount(group: string, mounted: string): string {
  if (mounted === '/') {
    return group;
  }
  return group.startsWith(`${mounted}/`) ? group.slice(mounted.length) : '/';
}

async function openFirst({ resources, own }: CgroupPlace, name: string): Promise<Hierarchy> {
  const folder = path.join(own, name);
  await mkdir(folder, { recursive: true });
  return { version: 1, resources, folder };
}

/**
 * Groups below a second-version group have limits only where that group allows it, and it may do so only while it holds no
 * processes itself, unless it is the real root. Where nothing else works, our own processes move into a group of their own.
 */
async function openSecond({ root, own }: CgroupPlace, name: string): Promise<Hierarchy> {
  let failure: unknown;
  for (const [parent, moves] of [
    [own, false],
    [root, false],
    [own, true],
  ] as const) {
    const offered = (await readIfThere(path.join(parent, 'cgroup.controllers'))).trim().split(' ');
    const resources = CGROUP_RESOURCES.filter((resource) => offered.includes(resource));
    if (resources.length === 0) {
      continue;
    }
    try {
      if (moves) {
        await moveToLeaf(parent);
      }
      const folder = path.join(parent, name);
      await delegate(parent, resources);
      await mkdir(folder, { recursive: true });
      await delegate(folder, resources);
      return { version: 2, resources, folder };
    } catch (error) {
      failure = error;
    }
  }
  if (failure !== undefined) {
    throw new Error(errorMessage(failure), { cause: failure });
  }
  return { version: 2, resources: [], folder: path.join(own, name) };
}

async function delegate(group: string, resources: readonly CgroupResource[]): Promise<void> {
  const file = path.join(group, 'cgroup.subtree_control');
  const given = (await readFile(file, 'utf8')).trim().split(' ');
  const missing = resources.filter((resource) => !given.includes(resource));
  if (missing.length > 0) {
    await writeFile(file, missing.map((resource) => `+${resource}`).join(' '));
  }
}

async function moveToLeaf(group: string): Promise<void> {
  const leaf = path.join(group, OWN_LEAF);
  await mkdir(leaf, { recursive: true });
  const members = (await readFile(path.join(group, 'cgroup.procs'), 'utf8')).split('\n').filter(Boolean);
  for (const pid of members) {
    await writeFile(path.join(leaf, 'cgroup.procs'), pid).catch(ignoreGone);
  }
}

type Setting = [file: string, text: string, required: boolean];

/** The files of a group and what they hold; optional ones are missing on some kernels. */
const settings = {
  1: (resource: CgroupResource, limits: CgroupLimits): Setting[] => {
    switch (resource) {
      case 'pids':
        return [['pids.max', String(limits.processes), true]];
      case 'memory':
        return [
          ['memory.limit_in_bytes', String(limits.memoryBytes), true],
          ['memory.memsw.limit_in_bytes', String(limits.memoryBytes), false],
        ];
      case 'cpu':
        return [
          ['cpu.cfs_period_us', String(PERIOD_US), true],
          ['cpu.cfs_quota_us', quota(limits.cpu), true],
          ['cpu.shares', SHARES[1], false],
        ];
    }
  },
  2: (resource: CgroupResource, limits: CgroupLimits): Setting[] => {
    switch (resource) {
      case 'pids':
        return [['pids.max', String(limits.processes), true]];
      case 'memory':
        return [
          ['memory.max', String(limits.memoryBytes), true],
          ['memory.swap.max', '0', false],
        ];
      case 'cpu':
        return [
          ['cpu.max', `${quota(limits.cpu)} ${PERIOD_US}`, true],
          ['cpu.weight', SHARES[2], false],
        ];
    }
  },
};

function quota(cpu: number): string {
  return String(Math.max(1000, Math.round(cpu * PERIOD_US)));
}

/** Another process of this host may remove our folder with its last group in just this moment. */
async function makeGroup({ version, resources, folder }: Hierarchy, group: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const made = await mkdir(folder, { recursive: true });
    try {
      if (made !== undefined && version === 2) {
        await delegate(folder, resources);
      }
      await mkdir(group);
      return;
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) {
        throw error;
      }
    }
  }
}

async function removeGroup(group: string): Promise<void> {
  for (const entry of await readdir(group, { withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory()) {
      await removeGroup(path.join(group, entry.name));
    }
  }
  await rmdir(group).catch(ignoreGone);
}

/** Processes that are about to end still count for a moment: such a group is removed with a later sweep. */
function ignoreGone(error: unknown): void {
  if (!['ENOENT', 'ESRCH', 'EBUSY', 'ENOTEMPTY', 'ENODEV'].includes(errorCode(error) ?? '')) {
    throw error;
  }
}

async function readIfThere(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch(() => '');
}

/** Spaces and the like are octal there. */
function unescapeMount(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 8)),
  );
}
