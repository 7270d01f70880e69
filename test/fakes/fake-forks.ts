import { defaultBranchOf, repositoryIn } from './fake-change-requests.js';
import { changeIn } from './fake-followed.js';
import type { FakeChangeRequest, FakeRepository, FakeWorld } from './fake-world.js';

/** The forks of a repository that the user of the world owns. */
export function ownForks(world: FakeWorld, name: string, owner: string): FakeRepository[] {
  return world.repositories.filter((each) => each.forkOf === name && each.name.startsWith(`${owner}/`));
}

/** Forks in the world, or says why not. It begins with the default branch alone, as some hosts' forks do. */
export function forkInto(
  world: FakeWorld,
  upstream: FakeRepository,
  name: string,
): FakeRepository | 'forbidden' | 'taken' {
  if (upstream.forking === 'forbidden') {
    return 'forbidden';
  }
  if (repositoryIn(world, name)) {
    return 'taken';
  }
  const fork: FakeRepository = {
    name,
    activeAt: upstream.activeAt,
    fork: true,
    forkOf: upstream.name,
    defaultBranch: defaultBranchOf(upstream),
    isPublic: upstream.isPublic ?? false,
    lookups: upstream.forkLookups ?? 0,
  };
  world.repositories.push(fork);
  return fork;
}

/** Whether the host is copying still; each question counts as time. */
export function isCopying(repository: FakeRepository): boolean {
  const left = repository.lookups ?? 0;
  repository.lookups = Math.max(0, left - 1);
  return left > 0;
}

/** What a host tells of the two sides of a change request. */
export function sidesOf(
  world: FakeWorld,
  repository: string,
  number: number,
): { change: FakeChangeRequest; source: FakeRepository | null; branch: string; target: string } | null {
  const change = changeIn(world, repository, number);
  const upstream = repositoryIn(world, repository);
  if (!change || !upstream) {
    return null;
  }
  return {
    change,
    source: change.fork === undefined ? upstream : (repositoryIn(world, change.fork) ?? null),
    branch: change.sourceBranch ?? 'topic',
    target: change.targetBranch ?? defaultBranchOf(upstream),
  };
}
