import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import type { GuardedHttpClient } from '../../common/http/guarded-http.client.js';
import { jsonList, jsonText } from '../../common/json-access.js';
import { hasAgentInstructions } from '../agent-instructions.js';
import { sendChange } from '../change-requests.js';
import {
  type ChangeRequest,
  GitProviderError,
  type ProbedRepository,
  type ProviderAuth,
  type ProviderCall,
  type Signal,
} from '../git-provider.js';
import { exchangeJson, type GapLog, type RetryTiming } from '../provider-http.js';
import {
  type BitbucketPullRequest,
  bitbucketReasons,
  type BitbucketRepository,
  COMMENT_FIELDS,
  FOLDER_FIELDS,
  isUnresolvedThread,
  STATUS_FIELDS,
  toConflicts,
  toEntryNames,
  toFailingChecks,
} from './bitbucket.mapper.js';

interface BitbucketClientOptions {
  /** Such as `https://api.bitbucket.org/2.0`. */
  apiUrl: string;
  timing: RetryTiming;
}

/** `optional` requests are the first to be given up when the hourly limit comes near. */
type BitbucketNeed = 'needed' | 'optional';

export interface BitbucketList {
  values: unknown[];
  /** False when there were more pages than could or should be read. */
  complete: boolean;
}

interface BitbucketListOptions {
  /** Pages read at most, each costs a round trip. */
  maxPages: number;
  need?: BitbucketNeed;
  /** Ends the reading early, once an element is all that matters. */
  until?: (value: unknown) => boolean;
}

/** Requests in flight at the same time for one refresh: kind to the limit, and no user fills the connection pool alone. */
const MAX_IN_FLIGHT = 24;

/**
 * Bitbucket Cloud over HTTP for one refresh of one user (https://developer.atlassian.com/cloud/bitbucket/rest/).
 * Make a new one per refresh: once the provider refuses for too many requests, this one asks nothing more.
 */
export class BitbucketClient {
  private readonly limit = pLimit(MAX_IN_FLIGHT);
  private readonly apiUrl: string;
  private readonly headers: Record<string, string>;
  private readonly token: string;
  private refusal: GitProviderError | null = null;
  private nearLimit = false;

  constructor(
    private readonly http: GuardedHttpClient,
    private readonly options: BitbucketClientOptions,
    auth: ProviderAuth,
    private readonly call: ProviderCall,
  ) {
    this.apiUrl = options.apiUrl.replace(/\/+$/, '');
    this.token = auth.token;
    this.headers = { authorization: authorization(auth.token) };
  }

  /**
   * Reads one resource; null when there is none (404).
   *
   * @param path Below the API address, encoded, with its query
   * @throws GitProviderError
   */
  async get(path: string, need: BitbucketNeed = 'needed'): Promise<unknown> {
    return await this.request(`${this.apiUrl}${path}`, need);
  }

  /**
   * Reads a paged list, following `next` as long as it stays on the API's origin: the token goes nowhere else.
   * Null when there is none (404).
   *
   * @throws GitProviderError
   */
  async list(path: string, options: BitbucketListOptions): Promise<BitbucketList | null> {
    const values: unknown[] = [];
    let url: string | null = `${this.apiUrl}${path}`;
    for (let page = 1; url !== null; page += 1) {
      const body = await this.request(url, options.need ?? 'needed');
      if (body === null) {
        return page === 1 ? null : { values, complete: false };
      }
      const elements = jsonList(body, 'values');
      values.push(...elements);
      const next = jsonText(body, 'next');
      if (next === null || elements.some((element) => options.until?.(element) ?? false)) {
        return { values, complete: next === null };
      }
      url = page < options.maxPages && this.isOwn(next) ? next : null;
    }
    return { values, complete: false };
  }

  /**
   * Sends a change once.
   *
   * @param path Below the API address, encoded
   * @throws GitProviderError with a `reason` when Bitbucket refuses
   */
  async change(path: string, body: unknown): Promise<unknown> {
    const { headers, token } = this;
    const url = `${this.apiUrl}${path}`;
    return await sendChange(
      this.http,
      { url, headers, body, token, reasons: bitbucketReasons },
      this.call,
      this.options.timing,
    );
  }

  /** Of the API. */
  get origin(): string {
    return new URL(this.apiUrl).origin;
  }

  private isOwn(address: string): boolean {
    return URL.canParse(address) && new URL(address).origin === this.origin;
  }

  private async request(url: string, need: BitbucketNeed): Promise<unknown> {
    return await this.limit(async () => {
      if (this.refusal) {
        throw this.refusal;
      }
      if (this.nearLimit && need === 'optional') {
        throw new GitProviderError('rate_limited');
      }
      try {
        const { http, call, headers, options } = this;
        const answer = await exchangeJson(http, { url, headers }, call, options.timing);
        this.nearLimit ||= answer.headers.get('x-ratelimit-nearlimit')?.toLowerCase() === 'true';
        return answer.body;
      } catch (error) {
        if (error instanceof GitProviderError && error.code === 'rate_limited') {
          this.refusal = error;
        }
        throw error;
      }
    });
  }
}

/** An API token comes with its account (`email:token`) and is a password; every other kind is a bearer token. */
function authorization(token: string): string {
  return token.includes(':') ? `Basic ${Buffer.from(token, 'utf8').toString('base64')}` : `Bearer ${token}`;
}

/** Who the token belongs to and where it can look. */
export interface BitbucketIdentity {
  /** In braces, as the provider writes it. */
  uuid: string;
  workspaces: string[];
  /** There are more workspaces than were read. */
  truncated: boolean;
}

const IDENTITY_TTL_MS = 60 * 60 * 1000;
/** Bounds how long an answer stays whose key did not notice a change. */
const SIGNAL_TTL_MS = 10 * 60 * 1000;
const MAX_IDENTITIES = 5_000;
const MAX_SIGNALS = 50_000;

/**
 * What needs no second question for a while: identities, and details of pull requests that have not changed. The
 * provider grants 1,000 requests an hour. Bounded, and entries of one token are invisible to any other.
 */
export class BitbucketMemory {
  /** Tokens are remembered as keyed hashes only, and the key dies with the process. */
  private readonly secret = randomBytes(32);
  private readonly identities: LRUCache<string, BitbucketIdentity>;
  private readonly signals: LRUCache<string, Signal>;

  /** @param now Epoch milliseconds */
  constructor(now: () => number) {
    const common = { perf: { now }, ttlResolution: 0 };
    this.identities = new LRUCache({ ...common, max: MAX_IDENTITIES, ttl: IDENTITY_TTL_MS });
    this.signals = new LRUCache({ ...common, max: MAX_SIGNALS, ttl: SIGNAL_TTL_MS });
  }

  /** Names the owner of entries: one token at one address. */
  ownerOf(apiUrl: string, token: string): string {
    return createHmac('sha256', this.secret).update(`${apiUrl}\n${token}`).digest('base64url');
  }

  identity(owner: string): BitbucketIdentity | undefined {
    return this.identities.get(owner);
  }

  rememberIdentity(owner: string, identity: BitbucketIdentity): void {
    this.identities.set(owner, identity);
  }

  forgetIdentity(owner: string): void {
    this.identities.delete(owner);
  }

  /** @param subject What was asked, with everything a change of the answer changes too */
  signal(owner: string, subject: string): Signal | undefined {
    return this.signals.get(`${owner} ${subject}`);
  }

  rememberSignal(owner: string, subject: string, signal: Signal): void {
    this.signals.set(`${owner} ${subject}`, signal);
  }
}

interface BitbucketDetailsContext {
  client: BitbucketClient;
  memory: BitbucketMemory;
  /** Owner of what is remembered. */
  owner: string;
  userUuid: string;
  gaps: GapLog;
}

/** A detail that needs more pages than this stays unknown. */
const MAX_PAGES = 3;

/**
 * The last round trip: signals of one pull request, and agent instructions of one repository. Every failure costs
 * the one signal (`unknown`) or the one repository it hits, and is noted as a gap.
 */
export class BitbucketDetails {
  constructor(private readonly context: BitbucketDetailsContext) {}

  /** The three signals, side by side. */
  async signalsOf(
    pull: BitbucketPullRequest,
  ): Promise<Pick<ChangeRequest, 'conflicts' | 'failingChecks' | 'unresolvedComments'>> {
    const path = `/repositories/${pull.repository}/pullrequests/${pull.id}`;
    const [conflicts, failingChecks, unresolvedComments] = await Promise.all([
      this.conflicts(pull, path),
      this.failingChecks(path),
      this.unresolvedComments(pull, path),
    ]);
    return { conflicts, failingChecks, unresolvedComments };
  }

  /** The repository with what it tells agents; null when that could not be found out, or nothing can be added to it. */
  async probe({ name, activeAt }: BitbucketRepository): Promise<ProbedRepository | null> {
    const [root, microagents, skills] = await Promise.all(
      ['', '.openhands/microagents/', '.openhands/skills/'].map((folder) => this.entries(name, folder)),
    );
    // A root that is not there is a repository without commits, or one that was deleted just now.
    if (!root || !microagents || !skills || root.names.length === 0) {
      return null;
    }
    const hasInstructions = hasAgentInstructions({
      repository: name,
      rootEntries: root.names,
      microagents: microagents.names,
      skills: skills.names,
    });
    if (!hasInstructions && !root.complete) {
      return null;
    }
    return { name, activeAt, usable: true, writable: true, hasAgentInstructions: hasInstructions };
  }

  /** Asked through a redirect. Some kinds of token are refused here for good, which says nothing about conflicts. */
  private async conflicts(pull: BitbucketPullRequest, path: string): Promise<Signal> {
    const subject = pull.commits === null ? null : `conflicts ${path} ${pull.commits}`;
    return await this.remembered(subject, async () => {
      try {
        return {
          signal: toConflicts(await this.context.client.get(`${path}/conflicts?pagelen=1`)),
          lasting: true,
        };
      } catch (error) {
        if (error instanceof GitProviderError && error.code === 'insufficient_scope') {
          return { signal: 'unknown', lasting: true };
        }
        return this.missing(error);
      }
    });
  }

  /** Never remembered: builds report whenever they like. */
  private async failingChecks(path: string): Promise<Signal> {
    try {
      const list = await this.context.client.list(`${path}/statuses?pagelen=100&fields=${STATUS_FIELDS}`, {
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
    const isOpen = (comment: unknown): boolean => isUnresolvedThread(comment, userUuid);
    return await this.remembered(`comments ${path} ${pull.updatedAt} ${pull.comments}`, async () => {
      try {
        const list = await client.list(`${path}/comments?pagelen=100&fields=${COMMENT_FIELDS}`, {
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

  private async entries(
    repository: string,
    folder: string,
  ): Promise<{ names: string[]; complete: boolean } | null> {
    try {
      const list = await this.context.client.list(
        `/repositories/${repository}/src/HEAD/${folder}?pagelen=100&fields=${FOLDER_FIELDS}`,
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
    const { memory, owner } = this.context;
    const known = subject === null ? undefined : memory.signal(owner, subject);
    if (known !== undefined) {
      return known;
    }
    const { signal, lasting } = await ask();
    if (subject !== null && lasting) {
      memory.rememberSignal(owner, subject, signal);
    }
    return signal;
  }
}
