import { Injectable } from '@nestjs/common';
import { DomainError } from '../common/errors/domain-error.js';
import type { ProviderType, ProviderWork } from '../git-providers/git-provider.js';
import { ProviderTokenRepository } from '../git-providers/tokens/provider-token.repository.js';
import { allProvidersFailed, type ProviderStatus } from './provider-status.js';
import type { Candidate, TaskType, WorkSource } from './candidate.js';
import { type CollectedCandidates, collectCandidates } from './collect-candidates.js';
import { rankTasks } from './candidate.js';
import { WorkReader, type ProviderOutcome } from './work.reader.js';

const DEFAULT_LIMIT = 100;

export interface TaskSelection {
  taskTypes?: readonly TaskType[];
  providers?: readonly ProviderType[];
  limit?: number;
}

export interface SuggestedTasks {
  tasks: Candidate[];
  statuses: ProviderStatus[];
}

@Injectable()
export class SuggestedTasksService {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly reader: WorkReader,
  ) {}

  /** Ranked tasks of all providers that respond. @throws DomainError no_git_provider, git_providers_failed */
  async find(userId: string, selection: TaskSelection): Promise<SuggestedTasks> {
    const credentials = await this.tokens.list(userId);
    if (credentials.length === 0) {
      throw new DomainError('unauthorized', 'no_git_provider', 'No providers set.');
    }
    const asked = credentials.filter(({ provider }) => selection.providers?.includes(provider) ?? true);
    const outcomes = await Promise.all(asked.map((credential) => this.reader.read(userId, credential)));
    const failures = outcomes.filter((outcome) => 'error' in outcome);
    if (failures.length > 0 && failures.length === outcomes.length) {
      throw allProvidersFailed(failures);
    }
    return selectTasks(outcomes, selection);
  }
}

function selectTasks(outcomes: readonly ProviderOutcome[], selection: TaskSelection): SuggestedTasks {
  const collected = outcomes.map((outcome) => ({
    outcome,
    ...('error' in outcome
      ? { candidates: [], truncated: false }
      : candidatesOf(outcome.source, outcome.read.value)),
  }));
  const ranked = rankTasks(collected.flatMap(({ candidates }) => candidates)).filter(
    ({ type }) => selection.taskTypes?.includes(type) ?? true,
  );
  const tasks = ranked.slice(0, selection.limit ?? DEFAULT_LIMIT);
  const beyond = new Set(ranked.slice(tasks.length).map(({ provider }) => provider));
  const statuses = collected.map(({ outcome, truncated }) =>
    statusOf(outcome, tasks, truncated || beyond.has(outcome.provider)),
  );
  return { tasks, statuses };
}

/** The cache returns the same work object for a minute or two, always from the same source. */
const candidatesByWork = new WeakMap<ProviderWork, CollectedCandidates>();

function candidatesOf(source: WorkSource, work: ProviderWork): CollectedCandidates {
  let collected = candidatesByWork.get(work);
  if (!collected) {
    collected = collectCandidates(source, work);
    candidatesByWork.set(work, collected);
  }
  return collected;
}

function statusOf(outcome: ProviderOutcome, tasks: readonly Candidate[], truncated: boolean): ProviderStatus {
  const { provider } = outcome;
  if ('error' in outcome) {
    const { code, said, retryAfterSeconds } = outcome.error;
    return {
      provider,
      status: 'error',
      code,
      ...(said !== null && { detail: said }),
      ...(retryAfterSeconds !== null && { retryAfter: Math.ceil(retryAfterSeconds) }),
    };
  }
  const { stale, age, value: work } = outcome.read;
  const count = tasks.filter((task) => task.provider === provider).length;
  const [gap] = work.gaps;
  if (stale) {
    return { provider, status: 'stale', age, count, truncated };
  }
  if (gap === undefined) {
    return { provider, status: 'ok', count, truncated };
  }
  const detail = work.gapReasons?.[gap];
  return { provider, status: 'partial', code: gap, ...(detail && { detail }), count, truncated };
}
