import type { ChangeHead, Forks, OwnRights } from './forks.js';
import { GitProviderError, type ProviderCall } from './git-provider.js';
import type { RetryTiming } from './provider-http.js';

const POLL_MS = 2_000;
const MAX_POLLS = 15;
/** `app`, `app-1`, `app-2` … */
const MAX_NAMES = 5;

export interface FoundFork {
  name: string;
  isReady: boolean;
}

/** The forks of one call to one server. */
export abstract class ForkHost implements Forks {
  constructor(protected readonly waiting: { call: ProviderCall; timing: RetryTiming }) {}

  abstract head(repository: string, number: number): Promise<ChangeHead | null>;
  abstract rights(repository: string): Promise<OwnRights>;

  /** The one that the user has. */
  protected abstract find(repository: string): Promise<FoundFork | null>;
  /** Null where the user has another repository of that name. Sent once. */
  protected abstract create(repository: string, name: string): Promise<FoundFork | null>;
  /** Hosts copy in the background. @throws GitProviderError with a `reason` where that failed */
  protected abstract isReady(fork: string): Promise<boolean>;

  async own(repository: string): Promise<string> {
    const fork = (await this.find(repository)) ?? (await this.createNamed(repository));
    const { call, timing } = this.waiting;
    for (let poll = 0; poll < MAX_POLLS && timing.now() + POLL_MS < call.deadlineAt; poll += 1) {
      if (fork.isReady || (await this.isReady(fork.name))) {
        return fork.name;
      }
      await timing.delay(POLL_MS, call.signal);
    }
    throw new GitProviderError('unsupported', {
      reason: `the fork ${fork.name} is still being made: try again in a minute`,
    });
  }

  private async createNamed(repository: string): Promise<FoundFork> {
    const name = repository.slice(repository.lastIndexOf('/') + 1);
    for (let number = 0; number < MAX_NAMES; number += 1) {
      const fork = await this.create(repository, number === 0 ? name : `${name}-${number}`);
      if (fork) {
        return fork;
      }
    }
    throw new GitProviderError('unsupported', {
      reason: `you have other repositories of the names ${name} to ${name}-${MAX_NAMES - 1}, so it cannot be forked`,
    });
  }
}
