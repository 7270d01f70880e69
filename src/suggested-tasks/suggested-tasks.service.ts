import { Injectable } from '@nestjs/common';
import { isWithin, type KeyRepositories } from '../auth/key-repositories.js';
import { noGitProvider } from '../git-providers/git-provider-problem.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import {
  ProviderTokenRepository,
  type StoredCredential,
} from '../git-providers/tokens/provider-token.repository.js';
import { TokenRenewals } from '../git-providers/tokens/token-renewals.js';
import { type Candidate, rankTasks, type TaskType } from './collect-candidates.js';
import { allProvidersFailed, type ProviderStatus, providerStatus } from './provider-status.js';
import { type ProviderOutcome, WorkReader } from './work.reader.js';

const DEFAULT_LIMIT = 100;

export interface TaskSelection {
  taskTypes?: readonly TaskType[];
  providers?: readonly ProviderType[];
  limit?: number;
  /** Of the key: null, or absent, for all. */
  repositories?: KeyRepositories;
}

export interface SuggestedTasks {
  tasks: Candidate[];
  statuses: ProviderStatus[];
}

@Injectable()
export class SuggestedTasksService {
  constructor(
    private readonly tokens: ProviderTokenRepository,
    private readonly renewals: TokenRenewals,
    private readonly reader: WorkReader,
  ) {}

  /** Ranked tasks of all providers that respond. @throws DomainError no_git_provider, git_providers_failed */
  async find(userId: string, selection: TaskSelection): Promise<SuggestedTasks> {
    const credentials = await this.renewals.current(userId);
    if (credentials.length === 0) {
      throw noGitProvider();
    }
    const asked = credentials.filter(({ provider }) => selection.providers?.includes(provider) ?? true);
    const outcomes = await Promise.all(asked.map((credential) => this.reader.read(userId, credential)));
    await this.noteVerified(userId, asked, outcomes);
    const failures = outcomes.filter((outcome) => 'error' in outcome);
    if (failures.length > 0 && failures.length === outcomes.length) {
      throw allProvidersFailed(failures);
    }
    return selectTasks(outcomes, selection);
  }

  /** A token whose host could not be asked when it was stored, and that has worked now. */
  private async noteVerified(
    userId: string,
    asked: readonly StoredCredential[],
    outcomes: readonly ProviderOutcome[],
  ): Promise<void> {
    for (const [index, { provider, verified, updatedAt }] of asked.entries()) {
      const outcome = outcomes[index];
      if (!verified && outcome && 'read' in outcome && !outcome.read.stale) {
        await this.tokens.markVerified(userId, provider, updatedAt);
      }
    }
  }
}

function selectTasks(outcomes: readonly ProviderOutcome[], selection: TaskSelection): SuggestedTasks {
  const { repositories = null } = selection;
  const candidates = outcomes
    .flatMap((outcome) => ('read' in outcome ? outcome.read.value.candidates : []))
    .filter((each) =>
      isWithin(repositories, { gitProvider: each.provider, selectedRepository: each.repository }),
    );
  const ranked = rankTasks(candidates).filter(({ type }) => selection.taskTypes?.includes(type) ?? true);
  const tasks = ranked.slice(0, selection.limit ?? DEFAULT_LIMIT);
  const beyond = new Set(ranked.slice(tasks.length).map(({ provider }) => provider));
  const statuses = outcomes.map((outcome) => {
    const count = tasks.filter(({ provider }) => provider === outcome.provider).length;
    return providerStatus(outcome, count, beyond.has(outcome.provider));
  });
  return { tasks, statuses };
}
