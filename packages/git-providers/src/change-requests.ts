import pLimit from 'p-limit';
import { withoutTerminalCodes } from '@slipway/common/terminal-text.js';
import { z } from 'zod';
import type { GuardedHttpClient } from '@slipway/common/http/guarded-http.client.js';
import { UpstreamError } from '@slipway/common/http/upstream-error.js';
import type { GitServerAddresses } from './public-git-servers.js';
import {
  type CommentPlace,
  type ChangeRequestRef,
  type ChangeRequests,
  type FollowedChangeRequest,
  type FollowedCheck,
  type FollowedComment,
  GitProvider,
  GitProviderError,
  type NewChangeRequest,
  type OpenedChangeRequest,
  type ProviderCall,
} from './git-provider.js';
import { providerErrorFromResponse, type ProviderResponseHead, type RefusalBody } from './provider-errors.js';
import { type RetryTiming, SYSTEM_RETRY_TIMING } from './provider-http.js';
import { requiredId, requireFitting } from './response-schema.js';

/** The addresses for requests and clones when a token has no host of its own. */
export interface GitServerOptions extends GitServerAddresses {
  timing?: RetryTiming;
}

/** What the adapters of all kinds of git servers share. */
export abstract class GitServerAdapter extends GitProvider {
  protected readonly timing: RetryTiming;

  constructor(
    protected readonly http: GuardedHttpClient,
    protected readonly options: GitServerOptions,
  ) {
    super();
    this.timing = options.timing ?? SYSTEM_RETRY_TIMING;
  }
}

const NOT_FOUND = 'the repository or branch does not exist, or the token may not see it';

/** After which a server knows of a push by its API, too. */
const PUSH_MS = 2_000;

/** The change requests of one call to one server. */
export abstract class ChangeRequestHost<Client> implements ChangeRequests {
  constructor(
    protected readonly client: Client,
    private readonly waiting: { call: ProviderCall; timing: RetryTiming },
  ) {}

  abstract read(refs: readonly ChangeRequestRef[]): Promise<(FollowedChangeRequest | null)[]>;
  abstract output(ref: ChangeRequestRef, check: FollowedCheck): Promise<string>;
  abstract reply(ref: ChangeRequestRef, comment: CommentPlace, body: string): Promise<{ id: string }>;

  /** Returns null for an empty repository. */
  protected abstract defaultBranch(repository: string): Promise<string | null>;
  protected abstract findOpen(
    request: NewChangeRequest,
    targetBranch: string,
  ): Promise<OpenedChangeRequest | null>;
  /** If the response is lost, the change may have been made. */
  protected abstract create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest>;

  /**
   * Looks first, since Bitbucket Cloud overwrites an existing one, and again after a failure: another request may have
   * been quicker, or only the response was lost. Asks again where the push may have been missed (https://github.com/cli/cli/issues/2691).
   */
  async open(request: NewChangeRequest): Promise<OpenedChangeRequest> {
    const targetBranch = request.targetBranch ?? (await this.defaultBranch(request.repository));
    if (targetBranch === null) {
      throw new GitProviderError('unsupported', {
        reason: 'the repository has no default branch: name the target branch',
      });
    }
    try {
      return await this.findOrCreate(request, targetBranch);
    } catch (error) {
      const { call, timing } = this.waiting;
      if (!mayMissPush(error) || timing.now() + PUSH_MS >= call.deadlineAt) {
        throw error;
      }
      await timing.delay(PUSH_MS, call.signal);
      return await this.findOrCreate(request, targetBranch);
    }
  }

  private async findOrCreate(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const existing = await this.findOpen(request, targetBranch);
    if (existing) {
      return existing;
    }
    try {
      return await this.create(request, targetBranch);
    } catch (error) {
      const meanwhile = mayExist(error) ? await this.findOpen(request, targetBranch) : null;
      if (meanwhile) {
        return meanwhile;
      }
      throw error;
    }
  }
}

function mayExist(error: unknown): boolean {
  const { code, reason } = error instanceof GitProviderError ? error : {};
  return code === 'unavailable' || (code === 'unsupported' && reason !== null);
}

function mayMissPush(error: unknown): boolean {
  const { code, reason } = error instanceof GitProviderError ? error : {};
  return code === 'unsupported' && /branch|\bcommits\b/i.test(reason ?? '');
}

/** The error for a refused change: a 4xx without a meaning of its own is `unsupported` with the host's `reason`. */
export function changeRefusal(
  response: ProviderResponseHead,
  reason: string | null,
  nowMs: number,
  body: RefusalBody,
): GitProviderError {
  const failure = providerErrorFromResponse(response, nowMs, body);
  if (failure?.code === 'insufficient_scope' || failure?.code === 'blocked_by_policy') {
    return new GitProviderError(failure.code, { reason: reason ?? 'the permission is missing' });
  }
  if (failure) {
    return failure;
  }
  if (response.status === 404) {
    return new GitProviderError('unsupported', {
      reason: reason === null ? NOT_FOUND : `${NOT_FOUND} (${reason})`,
    });
  }
  return new GitProviderError('unsupported', { reason: reason ?? `answered with ${response.status}` });
}

export function toOpenedChangeRequest(number: number | null, url: string | null): OpenedChangeRequest | null {
  const isUsable =
    number !== null &&
    Number.isInteger(number) &&
    url !== null &&
    /^https?:\/\//.test(url) &&
    URL.canParse(url);
  return isUsable ? { number, url } : null;
}

/** Checks the response to a creation. @throws GitProviderError `unavailable` when it holds no change request */
export function requireOpened(opened: OpenedChangeRequest | null, origin: string): OpenedChangeRequest {
  if (!opened) {
    throw new GitProviderError('unavailable', { cause: new UpstreamError('malformed', origin) });
  }
  return opened;
}

/** Requires a response. @throws GitProviderError with a reason for null, which stands for 404 */
export function requireRepository<T>(response: T | null): T {
  if (response === null) {
    throw new GitProviderError('unsupported', {
      reason: 'the repository does not exist, or the token may not see it',
    });
  }
  return response;
}

export const MAX_FOLLOWED_CHECKS = 100;
export const MAX_COMMENTS = 100;
const MAX_BODY = 4_000;
const MAX_OUTPUT = 4_000;

/** Comments may be longer than any other text of a host. */
export const commentBody = z
  .string()
  .catch('')
  .transform((text) => text.slice(0, MAX_BODY).toWellFormed());

/** A line of a file. */
export const lineNumber = z.int().positive().nullable().catch(null);

/** Also of a host that has no public name. */
export const requiredPageUrl = z.url({ protocol: /^https?$/ }).max(2_048);

/** An address to show, never to call. */
export const pageUrl = requiredPageUrl.nullable().catch(null);

/**
 * Returns null for a change request that is gone; an answer of another shape means that the host is in trouble.
 * @throws GitProviderError
 */
export function requireAnswer<T>(schema: z.ZodType<T>, answer: unknown): T | null {
  return answer === null ? null : requireFitting(schema, answer, 'the response is no change request');
}

const writtenSchema = z.object({ id: requiredId });

/** The number of a comment that was written. @throws GitProviderError */
export function writtenComment(answer: unknown): { id: string } {
  return requireFitting(writtenSchema, answer, 'the comment has no number');
}

/** Puts the comments in order, and keeps the newest. */
export function boundFollowed(followed: FollowedChangeRequest): FollowedChangeRequest {
  const { checks } = followed;
  const comments = followed.comments
    .filter(({ body }) => body.trim() !== '')
    .toSorted((a, b) => a.createdAt - b.createdAt || sequenceOf(a) - sequenceOf(b));
  const isOpenCut = comments.slice(0, -MAX_COMMENTS).some(({ resolved }) => resolved === false);
  return {
    ...followed,
    checks: checks.slice(0, MAX_FOLLOWED_CHECKS),
    comments: comments.slice(-MAX_COMMENTS),
    truncated: followed.truncated || checks.length > MAX_FOLLOWED_CHECKS || isOpenCut,
  };
}

/** Hosts number comments; some tell their times in whole seconds. */
function sequenceOf({ id }: FollowedComment): number {
  return Number(/\d+$/.exec(id)?.[0] ?? 0);
}

/** What Actions and GitLab put before every line, and the marks of folded sections. */
const LOG_NOISE = /^section_(?:start|end):.*\r|^\d{4}-\d\d-\d\dT[\d:.]+Z (?:\d\d[OE]\+? ?)?/gm;

/** The last lines of a log, for people. */
export function logTail(log: string): string {
  const plain = withoutTerminalCodes(log).replace(LOG_NOISE, '').replace(/\r\n?/g, '\n').trimEnd();
  const end = plain.slice(-MAX_OUTPUT);
  // Not from the middle of a line, unless that is all there is.
  return end.length < plain.length && end.includes('\n')
    ? end.slice(end.indexOf('\n') + 1)
    : end.toWellFormed();
}

/** Change requests at a time: each takes four requests or more, of which Bitbucket Cloud allows 1,000 an hour. */
const AT_ONCE = 4;

/** Reads change requests one by one, a few at a time, in their order. */
export async function readEach<Result>(
  refs: readonly ChangeRequestRef[],
  read: (ref: ChangeRequestRef) => Promise<Result>,
): Promise<Result[]> {
  return await pLimit(AT_ONCE).map(refs, read);
}

/** Reads change requests in questions of at most `batch`, in their order. */
export async function readInBatches<Result>(
  refs: readonly ChangeRequestRef[],
  { batch, pageSize }: { batch: number; pageSize: number },
  read: (refs: readonly ChangeRequestRef[], pageSize: number) => Promise<Result[]>,
): Promise<Result[]> {
  const found: Result[] = [];
  for (let start = 0; start < refs.length; start += batch) {
    found.push(...(await readInParts(refs.slice(start, start + batch), pageSize, read)));
  }
  return found;
}

/** Strangers may write more than a response may have: then fewer are read at a time, and at last less of each. */
async function readInParts<Result>(
  refs: readonly ChangeRequestRef[],
  pageSize: number,
  read: (refs: readonly ChangeRequestRef[], pageSize: number) => Promise<Result[]>,
): Promise<Result[]> {
  try {
    return await read(refs, pageSize);
  } catch (error) {
    if (!isTooLarge(error) || (refs.length === 1 && pageSize === 1)) {
      throw error;
    }
    const smaller =
      refs.length === 1
        ? { batch: 1, pageSize: Math.floor(pageSize / 2) }
        : { batch: Math.ceil(refs.length / 2), pageSize };
    return await readInBatches(refs, smaller, read);
  }
}

function isTooLarge(error: unknown): boolean {
  return (
    error instanceof GitProviderError &&
    (error.code === 'query_too_large' ||
      (error.cause instanceof UpstreamError && error.cause.reason === 'too_large'))
  );
}
