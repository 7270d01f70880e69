import type { FakeChangeRequest, FakeIssue, FakeRepository, FakeWorld } from './fake-world.js';

/** What a request to open a change request says, in no vendor's words. */
export interface FakeOpening {
  repository: string;
  sourceBranch: string;
  targetBranch: string;
  title: string;
  body: string;
  draft: boolean;
  /** Full name; absent if it is the repository itself. */
  fork?: string;
}

/** Why a host opens nothing. */
export type FakeRefusal = 'exists' | 'no_source' | 'no_target' | 'nothing_new';

const OPENED_AT = '2026-11-21T12:00:00Z';

/** The repository of that name, as hosts know them: whatever the case of its letters. */
export function repositoryIn(world: FakeWorld, name: string): FakeRepository | undefined {
  return world.repositories.find((repository) => repository.name.toLowerCase() === name.toLowerCase());
}

export function defaultBranchOf(repository: FakeRepository): string {
  return repository.defaultBranch ?? 'main';
}

/** The open change requests from one branch of a repository, or of a fork of it. */
export function openFrom(
  world: FakeWorld,
  repository: string,
  sourceBranch: string,
  fork?: string,
): FakeChangeRequest[] {
  return world.changeRequests.filter(
    (change) =>
      change.repository === repository &&
      change.fork === fork &&
      change.sourceBranch === sourceBranch &&
      (change.followed?.state ?? 'open') === 'open',
  );
}

/** Opens a change request in the world, or says why not. */
export function openIn(
  world: FakeWorld,
  repository: FakeRepository,
  opening: FakeOpening,
): FakeChangeRequest | FakeRefusal {
  const { sourceBranch, targetBranch, fork } = opening;
  const source = fork === undefined ? repository : repositoryIn(world, fork);
  if (source?.missesPush) {
    source.missesPush -= 1;
    return 'no_source';
  }
  if (!source || !branchNames(source).includes(sourceBranch)) {
    return 'no_source';
  }
  if (!branchNames(repository).includes(targetBranch)) {
    return 'no_target';
  }
  if (fork === undefined && sourceBranch === targetBranch) {
    return 'nothing_new';
  }
  if (
    openFrom(world, repository.name, sourceBranch, fork).some(
      (change) => change.targetBranch === targetBranch,
    )
  ) {
    return 'exists';
  }
  return addTo(world, { ...opening, repository: repository.name });
}

function branchNames(repository: FakeRepository): string[] {
  return [defaultBranchOf(repository), ...(repository.branches ?? [])];
}

/** Opens a change request without a look at the branches. */
export function addTo(world: FakeWorld, opening: FakeOpening): FakeChangeRequest {
  const numbers = world.changeRequests
    .filter(({ repository }) => repository === opening.repository)
    .map(({ number }) => number);
  const change = { ...opening, number: Math.max(0, ...numbers) + 1, updatedAt: OPENED_AT };
  world.changeRequests.push(change);
  world.onOpened?.(change);
  return change;
}

/** Page of a change request or an issue. */
export function pageOf({
  repository,
  number,
  pages = 'https://code.example',
}: FakeChangeRequest | FakeIssue): string {
  return `${pages}/${repository}/${number}`;
}
