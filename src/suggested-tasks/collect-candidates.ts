import { ascending, descending } from '@slipway/common/compare.js';
import {
  type GitServerKind,
  PROVIDER_TYPES,
  type ProviderType,
  type WorkPolicy,
  type AssignedIssue,
  type ChangeRequest,
  type ProbedRepository,
  type ProviderWork,
  type RepositoryActivity,
} from '@slipway/git-providers/git-provider.js';
import type { WorkItem } from '@slipway/git-providers/git-servers.js';

/** Task types in the order in which they are shown within a repository. */
export const TASK_TYPES = [
  'MERGE_CONFLICTS',
  'FAILING_CHECKS',
  'UNRESOLVED_COMMENTS',
  'OPEN_ISSUE',
  'OPEN_PR',
  'CREATE_MICROAGENT',
] as const;

export type TaskType = (typeof TASK_TYPES)[number];

/** A suggested task with what ranking needs. */
export interface Candidate {
  provider: ProviderType;
  type: TaskType;
  repository: string;
  /** 0 for CREATE_MICROAGENT. */
  number: number;
  title: string;
  /** Address of its page on the host; null when there is none. */
  url: string | null;
  /** Epoch milliseconds; the repository's time for CREATE_MICROAGENT. */
  updatedAt: number;
  /** Epoch milliseconds; -Infinity if unknown. */
  repositoryActiveAt: number;
  /** Equal for the same work item, however it was reached. */
  identity: string;
}

export interface WorkSource {
  provider: ProviderType;
  kind: GitServerKind;
  /** See `GitProvider.serverOf`. */
  server: string;
  policy: WorkPolicy;
  /** See `workPage`. */
  pageOf: (repository: string, item: WorkItem, number: number) => string | null;
}

/** Sorts in a total order: most recently active repository, type, newest, highest number, provider, name. */
export function rankTasks(candidates: readonly Candidate[]): Candidate[] {
  return withoutDuplicates(candidates).toSorted(
    (a, b) =>
      descending(a.repositoryActiveAt, b.repositoryActiveAt) ||
      TASK_TYPES.indexOf(a.type) - TASK_TYPES.indexOf(b.type) ||
      descending(a.updatedAt, b.updatedAt) ||
      descending(a.number, b.number) ||
      PROVIDER_TYPES.indexOf(a.provider) - PROVIDER_TYPES.indexOf(b.provider) ||
      ascending(a.repository, b.repository) ||
      ascending(a.title, b.title),
  );
}

/** A user's own token wins over enterprise_sso's for the same item. */
function withoutDuplicates(candidates: readonly Candidate[]): Candidate[] {
  const byIdentity = new Map<string, Candidate>();
  for (const candidate of candidates) {
    const before = byIdentity.get(candidate.identity);
    if (!before || PROVIDER_TYPES.indexOf(candidate.provider) < PROVIDER_TYPES.indexOf(before.provider)) {
      byIdentity.set(candidate.identity, candidate);
    }
  }
  return [...byIdentity.values()];
}

const MAX_REPOSITORIES = 100;
const MAX_ISSUES = 50;
const MAX_INSTRUCTION_TASKS = 3;
const MAX_TITLE_LENGTH = 256;

interface ScopedRepository {
  usable: boolean;
  activeAt: number;
}

export interface CollectedCandidates {
  candidates: readonly Candidate[];
  /** Here or at the provider. */
  truncated: boolean;
}

/** Collects candidates of the 100 last active usable repositories, within the limits per kind, newest first. */
export function collectCandidates(source: WorkSource, work: ProviderWork): CollectedCandidates {
  const scope = repositoriesInScope(work);
  const inScope = (item: { repository: RepositoryActivity }): boolean =>
    scope.get(scopeKey(item.repository.name))?.usable === true;
  const candidate = (
    item: ChangeRequest | AssignedIssue,
    type: Candidate['type'],
    workKind: WorkItem,
  ): Candidate => ({
    provider: source.provider,
    type,
    repository: item.repository.name,
    number: item.number,
    title: cleanTitle(item.title),
    url: source.pageOf(item.repository.name, workKind, item.number),
    updatedAt: item.updatedAt,
    repositoryActiveAt: scope.get(scopeKey(item.repository.name))?.activeAt ?? -Infinity,
    identity: identity(source, item.repository.name, workKind, item.number),
  });

  const changes = newest(work.changeRequests.filter(inScope), source.policy.maxChangeRequests);
  const issues = newest(work.issues.filter(inScope), MAX_ISSUES);
  const lacking = work.probedRepositories
    .filter((probed) => lacksAgentInstructions(probed) && scope.get(scopeKey(probed.name))?.usable === true)
    .map((probed) => ({
      name: probed.name,
      updatedAt: scope.get(scopeKey(probed.name))?.activeAt ?? -Infinity,
    }));
  const instructions = newest(lacking, MAX_INSTRUCTION_TASKS);

  return {
    candidates: [
      ...changes.kept.flatMap((change) => {
        const type = classifyChangeRequest(change);
        return type === null ? [] : [candidate(change, type, 'change')];
      }),
      ...issues.kept.map((issue) => candidate(issue, 'OPEN_ISSUE', 'issue')),
      ...instructions.kept.map(({ name, updatedAt }): Candidate => ({
        provider: source.provider,
        type: 'CREATE_MICROAGENT',
        repository: name,
        number: 0,
        title: cleanTitle(`Add agent instructions to ${name}`),
        url: source.pageOf(name, 'change', 0),
        updatedAt,
        repositoryActiveAt: updatedAt,
        identity: identity(source, name, 'instructions', 0),
      })),
    ],
    truncated: work.truncated || changes.cut || issues.cut || instructions.cut,
  };
}

/** Chooses the most pressing task; null for a draft with no problem. An unknown signal counts as "no". */
export function classifyChangeRequest(
  change: Pick<ChangeRequest, 'conflicts' | 'failingChecks' | 'unresolvedComments' | 'draft'>,
): TaskType | null {
  if (change.conflicts === 'yes') {
    return 'MERGE_CONFLICTS';
  }
  if (change.failingChecks === 'yes') {
    return 'FAILING_CHECKS';
  }
  if (change.unresolvedComments === 'yes') {
    return 'UNRESOLVED_COMMENTS';
  }
  return change.draft ? null : 'OPEN_PR';
}

export function lacksAgentInstructions(repository: ProbedRepository): boolean {
  return repository.usable && repository.writable && !repository.hasAgentInstructions;
}

/** Removes control characters and cuts to at most 256 characters, never half of a surrogate pair. */
export function cleanTitle(title: string): string {
  const clean = title.replace(/\p{Cc}/gu, '');
  return clean.length <= MAX_TITLE_LENGTH ? clean : Array.from(clean).slice(0, MAX_TITLE_LENGTH).join('');
}

/** A repository without a time (Data Center) takes its newest item's, else comes last in its listed order. */
function repositoriesInScope(work: ProviderWork): Map<string, ScopedRepository> {
  const known = new Map<string, { usable: boolean; ownTime: number | null; itemTime: number | null }>();
  const add = ({ name, usable, activeAt }: RepositoryActivity, itemTime: number | null): void => {
    const before = known.get(scopeKey(name));
    known.set(scopeKey(name), {
      usable: usable && before?.usable !== false,
      ownTime: latest(before?.ownTime ?? null, activeAt),
      itemTime: latest(before?.itemTime ?? null, itemTime),
    });
  };
  for (const repository of [...work.recentRepositories, ...work.probedRepositories]) {
    add(repository, null);
  }
  for (const item of [...work.changeRequests, ...work.issues]) {
    add(item.repository, item.updatedAt);
  }
  const entries = [...known].map(
    ([name, { usable, ownTime, itemTime }]) =>
      [name, { usable, activeAt: ownTime ?? itemTime ?? -Infinity }] as const,
  );
  // Stable: equal times keep the provider's order.
  return new Map(
    entries.toSorted(([, a], [, b]) => descending(a.activeAt, b.activeAt)).slice(0, MAX_REPOSITORIES),
  );
}

function newest<T extends { updatedAt: number }>(
  items: readonly T[],
  max: number,
): { kept: T[]; cut: boolean } {
  const sorted = items.toSorted((a, b) => descending(a.updatedAt, b.updatedAt));
  return { kept: sorted.slice(0, max), cut: sorted.length > max };
}

function latest(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}

function scopeKey(repository: string): string {
  return repository.toLowerCase();
}

/** Identifies work by kind and address of its server, since one server can be reached through two providers. */
function identity(source: WorkSource, repository: string, kind: string, number: number): string {
  return [source.kind, source.server, repository.toLowerCase(), kind, number].join(' ');
}
