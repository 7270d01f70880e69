import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { errorCode, errorMessage, unlessCode } from '@slipway/common/errors/error-message.js';

const CGROUP_RESOURCES = ['pids', 'memory', 'cpu'] as const;
export type CgroupResource = (typeof CGROUP_RESOURCES)[number];

export interface CgroupLimits {
  processes: number;
  memoryBytes: number;
  cpu: number;
}

/** A writable hierarchy of control groups, and the folder in it that holds the groups of sandboxes. */
interface Hierarchy {
  version: 1 | 2;
  resources: CgroupResource[];
  folder: string;
}

interface CgroupSources {
  mounts: string;
  membership: string;
}

/** Ending processes count for a moment; a later sweep removes such a group. */
const GONE = ['ENOENT', 'ESRCH', 'EBUSY', 'ENOTEMPTY', 'ENODEV'];
const MAX_ATTEMPTS = 5;
const PERIOD_US = 100_000;
/** Half of the default (1024 in v1, 100 in v2), so that the service goes first. */
const SHARES = { 1: '512', 2: '50' } as const;
/** Takes our own processes, since a second-version group with child groups may hold none itself. */
const OWN_LEAF = 'slipway-service';
const UNIT_ADVICE = '; a unit of systemd needs Delegate=yes';

export class Cgroups {
  constructor(readonly hierarchies: readonly Hierarchy[]) {}

  get resources(): ReadonlySet<CgroupResource> {
    return new Set(this.hierarchies.flatMap(({ resources }) => resources));
  }

  get versions(): string {
    return [...new Set(this.hierarchies.map(({ version }) => `v${version}`))].toSorted().join(' and ');
  }

  /** Creates a group. A process joins it by writing `0` to the returned files. */
  async create(name: string, limits: CgroupLimits): Promise<string[]> {
    return await Promise.all(
      this.hierarchies.map(async (hierarchy) => {
        const { version, resources, folder } = hierarchy;
        const group = path.join(folder, name);
        await makeGroup(hierarchy, group);
        for (const [file, text, required] of resources.flatMap((resource) =>
          settings[version][resource](limits),
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
      await unlessCode(GONE, writeFile(path.join(hierarchy.folder, name, 'pids.max'), '0'));
    }
  }

  async members(name: string): Promise<number[]> {
    const [hierarchy] = this.hierarchies;
    const text =
      hierarchy === undefined ? '' : await readIfThere(path.join(hierarchy.folder, name, 'cgroup.procs'));
    return text.split('\n').filter(Boolean).map(Number);
  }

  /** Includes groups that an earlier service left. */
  async names(): Promise<string[]> {
    const found = await Promise.all(
      this.hierarchies.map(
        async ({ folder }) => await readdir(folder, { withFileTypes: true }).catch(() => []),
      ),
    );
    return [...new Set(found.flat().flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])))];
  }

  /** Removes an empty group and those below it; the last group takes our folder along. */
  async remove(name: string): Promise<void> {
    await Promise.all(
      this.hierarchies.map(async ({ folder }) => {
        await removeGroup(path.join(folder, name));
        await unlessCode(GONE, rmdir(folder));
      }),
    );
  }
}

/** Finds writable control groups by making our folder there, and says for the log why others are not usable. */
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
      await unlessCode(GONE, rmdir(hierarchy.folder));
    } catch (error) {
      problems.push(`${errorMessage(error)}${place.version === 1 ? '' : UNIT_ADVICE}`);
    }
  }
  const [problem = places.length === 0 ? 'no cgroups are mounted' : null] = problems;
  return { cgroups: new Cgroups(hierarchies), problem };
}

interface CgroupPlace {
  version: 1 | 2;
  resources: CgroupResource[];
  root: string;
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

/** A container may see only a part of the tree, but its own group by the whole path. */
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

/** A second-version group that limits children may hold no processes (cgroups(7)), so ours may have to move. */
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
    await unlessCode(GONE, writeFile(path.join(leaf, 'cgroup.procs'), pid));
  }
}

type Setting = [file: string, text: string, required: boolean];

const PIDS = ({ processes }: CgroupLimits): Setting[] => [['pids.max', String(processes), true]];

/** Optional files are missing on some kernels. */
const settings: Record<1 | 2, Record<CgroupResource, (limits: CgroupLimits) => Setting[]>> = {
  1: {
    pids: PIDS,
    memory: ({ memoryBytes }) => [
      ['memory.limit_in_bytes', String(memoryBytes), true],
      ['memory.memsw.limit_in_bytes', String(memoryBytes), false],
    ],
    cpu: ({ cpu }) => [
      ['cpu.cfs_period_us', String(PERIOD_US), true],
      ['cpu.cfs_quota_us', quota(cpu), true],
      ['cpu.shares', SHARES[1], false],
    ],
  },
  2: {
    pids: PIDS,
    memory: ({ memoryBytes }) => [
      ['memory.max', String(memoryBytes), true],
      ['memory.swap.max', '0', false],
    ],
    cpu: ({ cpu }) => [
      ['cpu.max', `${quota(cpu)} ${PERIOD_US}`, true],
      ['cpu.weight', SHARES[2], false],
    ],
  },
};

function quota(cpu: number): string {
  return String(Math.max(1000, Math.round(cpu * PERIOD_US)));
}

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
  await unlessCode(GONE, rmdir(group));
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
