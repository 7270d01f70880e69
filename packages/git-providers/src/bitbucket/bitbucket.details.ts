import { createHmac, randomBytes } from 'node:crypto';
import { BoundedCache } from '@slipway/common/bounded-cache.js';
import { type Signal, GitProviderError, type ProbedRepository } from '../git-provider.js';
import { INSTRUCTION_FOLDERS, probedFrom, type ReadFolder } from '../agent-instructions.js';
import type { GapLog } from '../provider-errors.js';
import type { BitbucketClient } from './bitbucket.client.js';
import {
  type BitbucketPullRequest,
  type BitbucketRepository,
  type BitbucketSignals,
  isUnresolvedThread,
  toConflicts,
  toEntryNames,
  toFailingChecks,
} from './bitbucket.mapper.js';
import {
  type BitbucketComment,
  commentsSchema,
  conflictsSchema,
  entriesSchema,
  statusesSchema,
} from './bitbucket.schema.js';

export interface BitbucketIdentity {
  /** Bitbucket writes it in braces. */
  uuid: string;
  workspaces: string[];
  truncated: boolean;
}

const IDENTITY_TTL_MS = 60 * 60 * 1000;
/** Bounds the life of a signal whose key did not notice a change. */
const SIGNAL_TTL_MS = 10 * 60 * 1000;
const MAX_IDENTITIES = 5_000;
const MAX_SIGNALS = 50_000;

/**
 * Identities, and details of unchanged pull requests, as Bitbucket allows 1,000 requests an hour. Bounded, and
 * separate for each token.
 */
export class BitbucketCache {
  /** Tokens are remembered as keyed hashes only, and the key dies with the process. */
  private readonly secret = randomBytes(32);
  /** Identities by owner. */
  readonly identities: BoundedCache<string, BitbucketIdentity>;
  /** Signals by owner and everything that changes when the signal changes. */
  readonly signals: BoundedCache<string, Signal>;

  /** `now` returns epoch milliseconds. */
  constructor(now: () => number) {
    const common = { perf: { now }, ttlResolution: 0 };
    this.identities = new BoundedCache(MAX_IDENTITIES, { ...common, ttl: IDENTITY_TTL_MS });
    this.signals = new BoundedCache(MAX_SIGNALS, { ...common, ttl: SIGNAL_TTL_MS });
  }

  ownerOf(apiUrl: string, token: string): string {
    return createHmac('sha256', this.secret).update(`${apiUrl}\n${token}`).digest('base64url');
  }
}

interface BitbucketDetailsContext {
  client: BitbucketClient;
  cache: BitbucketCache;
  owner: string;
  userUuid: string;
  gaps: GapLog;
}

/** A detail that needs more pages than this stays unknown. */
const MAX_PAGES = 3;

/** The last round trip. A failure costs one signal (`unknown`) or one repository, and is noted as a gap. */
export class BitbucketDetails {
  constructor(private readonly context: BitbucketDetailsContext) {}

  async signalsOf(pull: BitbucketPullRequest): Promise<BitbucketSignals> {
    const path = `/repositories/${pull.repository}/pullrequests/${pull.id}`;
    const [conflicts, failingChecks, unresolvedComments] = await Promise.all([
      this.conflicts(pull, path),
      this.failingChecks(path),
      this.unresolvedComments(pull, path),
    ]);
    return { conflicts, failingChecks, unresolvedComments };
  }

  async probe({ name, activeAt }: BitbucketRepository): Promise<ProbedRepository | null> {
    const folders = INSTRUCTION_FOLDERS.map((folder) =>
      this.entries(name, folder === '' ? '' : `${folder}/`),
    );
    return probedFrom({ name, activeAt, usable: true }, await Promise.all(folders));
  }

  /** Some kinds of token are refused here for good, which says nothing about conflicts. */
  async conflicts(pull: Pick<BitbucketPullRequest, 'commits'>, path: string): Promise<Signal> {
    const subject = pull.commits === null ? null : `conflicts ${path} ${pull.commits}`;
    return await this.remembered(subject, async () => {
      try {
        const conflicts = await this.context.client.find(`${path}/conflicts?pagelen=1`, conflictsSchema);
        return { signal: conflicts ? toConflicts(conflicts) : 'unknown', lasting: true };
      } catch (error) {
        if (error instanceof GitProviderError && error.code === 'insufficient_scope') {
          return { signal: 'unknown', lasting: true };
        }
        return this.missing(error);
      }
    });
  }

  /** Never cached: builds report at any time. */
  private async failingChecks(path: string): Promise<Signal> {
    try {
      const list = await this.context.client.list(`${path}/statuses?pagelen=100`, statusesSchema, {
        maxPages: MAX_PAGES,
      });
      return list?.complete ? toFailingChecks(list.values) : 'unknown';
    } catch (error) {
      return this.missing(error).signal;
    }
  }

  private async unresolvedComments(pull: BitbucketPullRequest, path: string): Promise<Signal> {
    if (pull.openTasks > 0 || pull.changesRequested) {
      return 'yes';
    }
    if (pull.comments === 0) {
      return 'no';
    }
    const { client, userUuid } = this.context;
    const isOpen = (comment: BitbucketComment): boolean => isUnresolvedThread(comment, userUuid);
    return await this.remembered(`comments ${path} ${pull.updatedAt} ${pull.comments}`, async () => {
      try {
        const list = await client.list(`${path}/comments?pagelen=100`, commentsSchema, {
          maxPages: MAX_PAGES,
          need: 'optional',
          until: isOpen,
        });
        if (list?.values.some(isOpen)) {
          return { signal: 'yes', lasting: true };
        }
        return { signal: list?.complete ? 'no' : 'unknown', lasting: true };
      } catch (error) {
        return this.missing(error);
      }
    });
  }

  private async entries(repository: string, folder: string): Promise<ReadFolder> {
    try {
      const list = await this.context.client.list(
        `/repositories/${repository}/src/HEAD/${folder}?pagelen=100`,
        entriesSchema,
        { maxPages: MAX_PAGES, need: 'optional' },
      );
      return { names: toEntryNames(list?.values ?? []), complete: list?.complete ?? true };
    } catch (error) {
      this.context.gaps.note(error);
      return null;
    }
  }

  private missing(error: unknown): { signal: Signal; lasting: boolean } {
    this.context.gaps.note(error);
    return { signal: 'unknown', lasting: false };
  }

  private async remembered(
    subject: string | null,
    ask: () => Promise<{ signal: Signal; lasting: boolean }>,
  ): Promise<Signal> {
    const { cache, owner } = this.context;
    const known = subject === null ? undefined : cache.signals.get(`${owner} ${subject}`);
    if (known !== undefined) {
      return known;
    }
    const { signal, lasting } = await ask();
    if (subject !== null && lasting) {
      cache.signals.set(`${owner} ${subject}`, signal);
    }
    return signal;
  }
}
