import type { ChangeHead, Forks, OwnRights } from './forks.js';
import { GitProviderError, type ProviderCall } from './git-provider.js';
import type { RetryTiming } from './provider-http.js';

const POLL_MS = 2_000;
const MAX_POLLS = 15;
/** `app`, `app-1`, `app-2` … */
const MAX_NAMES = 5;

export interface FoundFork {
  name: string;
  /** Absent: its branches have to be looked for. */
  isReady?: boolean;
}

/** The forks of one call to one server. */
export abstract class ForkHost<Client> implements Forks {
  constructor(
    protected readonly client: Client,
    private readonly waiting: { call: ProviderCall; timing: RetryTiming },
  ) {}

  abstract head(repository: string, number: number): Promise<ChangeHead | null>;
  abstract rights(repository: string): Promise<OwnRights>;

  /** The one that the user has. */
  protected abstract find(repository: string): Promise<FoundFork | null>;
  /** Sent once. @throws GitProviderError also where the user has another repository of that name */
  protected abstract create(repository: string, name: string): Promise<FoundFork>;
  /** Hosts copy in the background. @throws GitProviderError with a `reason` where that failed */
  protected abstract isReady(fork: string): Promise<boolean>;

  async own(repository: string): Promise<string> {
    const { name, isReady } = (await this.find(repository)) ?? (await this.createNamed(repository));
    const { call, timing } = this.waiting;
    for (let poll = 0; poll < MAX_POLLS && timing.now() + POLL_MS < call.deadlineAt; poll += 1) {
      if (isReady === true || (await this.isReady(name))) {
        return name;
      }
      await timing.delay(POLL_MS, call.signal);
    }
    throw refusal(`the fork ${name} is still being made: try again in a minute`);
  }

  private async createNamed(repository: string): Promise<FoundFork> {
    const name = repository.slice(repository.lastIndexOf('/') + 1);
    for (let number = 0; number < MAX_NAMES; number += 1) {
      const made = this.create(repository, number === 0 ? name : `${name}-${number}`);
      // Another request may have been quicker to take the name.
      const fork = (await made.catch(nullIfTaken)) ?? (await this.find(repository));
      if (fork) {
        return fork;
      }
    }
    throw refusal(`you have other repositories of the names ${name} to ${name}-${MAX_NAMES - 1}`);
  }
}

/** A fork in the words of hosts that tell how far they are. @throws GitProviderError where the copy failed */
export function toFork(name: string, state: 'copying' | 'failed' | 'ready'): FoundFork {
  if (state === 'failed') {
    throw refusal(`the fork ${name} could not be made: delete it, then try again`);
  }
  return { name, isReady: state === 'ready' };
}

function nullIfTaken(error: unknown): null {
  if (error instanceof GitProviderError && /already (been taken|taken|exists)/i.test(error.reason ?? '')) {
    return null;
  }
  throw error;
}

function refusal(reason: string): GitProviderError {
  return new GitProviderError('unsupported', { reason });
}
