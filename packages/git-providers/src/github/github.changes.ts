import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import {
  ChangeRequestHost,
  requireOpened,
  boundFollowed,
  commentBody,
  logTail,
  lineNumber,
  MAX_COMMENTS,
  pageUrl,
  requiredPageUrl,
  readInBatches,
  requireAnswer,
  writtenComment,
} from '../change-requests.js';
import type {
  NewChangeRequest,
  OpenedChangeRequest,
  ChangeRequestRef,
  FollowedChangeRequest,
  FollowedCheck,
  FollowedComment,
} from '../git-provider.js';
import { providerErrorFromUpstream, isNotFound } from '../provider-errors.js';
import { requireOwnerAndName } from '../repository-name.js';
import {
  flag,
  knownFlag,
  list,
  number,
  object,
  requiredId,
  requiredInstant,
  requiredName,
  text,
} from '../response-schema.js';
import { type GithubClient, type GithubRequestOptions, octokit } from './github.client.js';
import { toOpenedPullRequest, toConflicts } from './github.mapper.js';
import { restPullRequestSchema, restPullRequestsSchema, restRepositorySchema } from './github.schema.js';
import { CHECKS, checkMembers, hidesChecks, isCut, toChecks } from './github.checks.js';

/** About one point each of 5,000 an hour (https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api). */
const BATCH = { batch: 10, pageSize: 30 };
/** Used when strangers fill the usual window, so that they cannot hide what a writer asks for. */
const WIDE = { batch: 1, pageSize: 100 };
/** Everybody may comment in public repositories. */
const STRANGERS: readonly (string | null)[] = ['NONE', 'FIRST_TIMER', 'FIRST_TIME_CONTRIBUTOR', 'MANNEQUIN'];
/** Losses of a part of the response that say nothing about the rest of it. */
const PARTIAL: readonly string[] = ['insufficient_scope', 'blocked_by_policy', 'sso_required'];

const commentMembers = {
  fullDatabaseId: requiredId,
  author: object({ kind: text, login: text }),
  authorAssociation: text,
  viewerDidAuthor: flag,
  isMinimized: flag,
  body: commentBody,
  createdAt: requiredInstant,
  url: pageUrl,
};
const commentSchema = object(commentMembers);
type GithubComment = z.output<typeof commentSchema>;

export const followedPullSchema = z.object({
  state: z.enum(['OPEN', 'MERGED', 'CLOSED']),
  url: requiredPageUrl,
  headRefOid: requiredName,
  mergeable: text,
  reviewDecision: text,
  latestOpinionatedReviews: object({ nodes: list(object({ state: text })) }),
  ...checkMembers,
  reviewThreads: object({
    nodes: list(
      object({
        isResolved: z.boolean(),
        path: text,
        line: lineNumber,
        originalLine: lineNumber,
        root: object({ nodes: list(object({ fullDatabaseId: requiredId, authorAssociation: text })) }),
        comments: object({ nodes: list(object({ ...commentMembers, state: text })) }),
      }),
    ),
  }),
  threadStates: object({
    totalCount: number,
    nodes: list(
      object({
        isResolved: z.boolean(),
        comments: object({ nodes: list(object({ authorAssociation: text })) }),
      }),
    ),
  }),
  comments: object({ nodes: list(commentSchema) }),
  reviews: object({
    nodes: list(object({ ...commentMembers, state: text, authorCanPushToRepository: knownFlag })),
  }),
});
export type GithubFollowed = z.output<typeof followedPullSchema>;

const followedSchema = namedValues(z.string(), z.object({ pullRequest: z.unknown() }).nullable()).catch({});

const checkRunSchema = object({
  app: object({ slug: text }),
  output: object({ title: commentBody, summary: commentBody, text: commentBody }),
});

const COMMENT =
  'fullDatabaseId author { kind: __typename login } authorAssociation viewerDidAuthor isMinimized body createdAt url';
const FRAGMENT = `fragment Followed on PullRequest {
  state url headRefOid mergeable reviewDecision
  latestOpinionatedReviews(last: 50, writersOnly: true) { nodes { state } }
  ${CHECKS}
  threadStates: reviewThreads(last: 100) { totalCount nodes {
    isResolved comments(first: 1) { nodes { authorAssociation } }
  } }
  reviewThreads(last: $size) { nodes {
    isResolved path line originalLine
    root: comments(first: 1) { nodes { fullDatabaseId authorAssociation } }
    comments(last: $replies) { nodes { ${COMMENT} state } }
  } }
  comments(last: $size) { nodes { ${COMMENT} } }
  reviews(last: $size) { nodes { ${COMMENT} state authorCanPushToRepository } }
}`;

/**
 * Reads several pull requests with one GraphQL query. Everything else uses REST: GraphQL wants node ids and tells less about
 * refusals.
 */
export class GithubChanges extends ChangeRequestHost<GithubClient> {
  protected async defaultBranch(repository: string): Promise<string | null> {
    return await this.client.retryOnce(async () => {
      const { data } = await octokit.rest.repos.get(this.target(repository));
      return restRepositorySchema.parse(data).default_branch;
    });
  }

  protected async findOpen(
    request: NewChangeRequest,
    targetBranch: string,
  ): Promise<OpenedChangeRequest | null> {
    return await this.client.retryOnce(async () => {
      const { data } = await octokit.rest.pulls.list({
        ...this.target(request.repository),
        state: 'open',
        head: headOf(request),
        base: targetBranch,
        per_page: 100,
      });
      // GitHub lists those of other branches at the same commit, too (https://github.com/octokit/octokit.js/issues/2056).
      const found = restPullRequestsSchema.parse(data).find(({ head }) => head.ref === request.sourceBranch);
      return found ? toOpenedPullRequest(found) : null;
    });
  }

  protected async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const { repository, sourceBranch, fork, title, body, draft } = request;
    try {
      const { data } = await octokit.rest.pulls.create({
        ...this.target(repository),
        head: fork === undefined ? sourceBranch : headOf(request),
        base: targetBranch,
        title,
        body,
        draft,
        ...(fork !== undefined && { head_repo: fork.split('/')[1] }),
      });
      return requireOpened(toOpenedPullRequest(restPullRequestSchema.parse(data)), this.client.origin);
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  async read(refs: readonly ChangeRequestRef[]): Promise<(FollowedChangeRequest | null)[]> {
    const found = await readInBatches(refs, BATCH, (some, pageSize) => this.readSome(some, pageSize));
    return await Promise.all(
      found.map(async (pull, index) => {
        const crowded = refs.filter((_ref, at) => at === index && pull !== null && isCrowded(pull));
        const [wide] = await readInBatches(crowded, WIDE, (some, pageSize) => this.readSome(some, pageSize));
        const widest = wide ?? pull;
        return widest && toFollowed(widest);
      }),
    );
  }

  /** The log of a job of Actions, whose id is that of its check run; what other apps report themselves. */
  async output({ repository }: ChangeRequestRef, { id }: FollowedCheck): Promise<string> {
    const path = `/repos/${requireOwnerAndName(repository).join('/')}`;
    if (!/^\d+$/.test(id)) {
      return '';
    }
    try {
      const absent = this.client.absent('check', 403, 404);
      const { data } = await this.client.read(`${path}/check-runs/${id}`, checkRunSchema, absent);
      const { title, summary, text: details } = data.output;
      const said = [title, summary, details].filter((part) => part !== '').join('\n');
      return data.app.slug === 'github-actions'
        ? ((await this.client.tail(`${path}/actions/jobs/${id}/logs`)) ?? logTail(said))
        : logTail(said);
    } catch (error) {
      if (isNotFound(error)) {
        return '';
      }
      throw error;
    }
  }

  async reply(
    { repository, number: pull_number }: ChangeRequestRef,
    { threadId }: Pick<FollowedComment, 'threadId'>,
    body: string,
  ): Promise<{ id: string }> {
    const target = { ...this.target(repository), body };
    try {
      const { data } =
        threadId === null
          ? await octokit.rest.issues.createComment({ ...target, issue_number: pull_number })
          : await octokit.rest.pulls.createReplyForReviewComment({
              ...target,
              pull_number,
              comment_id: Number(threadId),
            });
      const { id } = writtenComment(data);
      return { id: threadId === null ? `issuecomment-${id}` : `discussion_r${id}` };
    } catch (error) {
      throw providerErrorFromUpstream(error);
    }
  }

  /** @throws GitProviderError with a reason for a name that is not `owner/name` */
  private target(repository: string): GithubRequestOptions & { owner: string; repo: string } {
    const [owner, repo] = requireOwnerAndName(repository);
    return {
      owner,
      repo,
      ...this.client.requestOptions((response, said) => this.client.refusal(response, said)),
    };
  }

  private async readSome(
    refs: readonly ChangeRequestRef[],
    size: number,
  ): Promise<(GithubFollowed | null)[]> {
    const names = refs.map(({ repository }) => requireOwnerAndName(repository));
    const declared = refs.map((_, index) => `$o${index}: String!, $r${index}: String!, $n${index}: Int!`);
    const asked = refs.map(
      (_, index) =>
        `c${index}: repository(owner: $o${index}, name: $r${index}) { pullRequest(number: $n${index}) { ...Followed } }`,
    );
    const query = `query Followed($size: Int!, $replies: Int!, ${declared.join(', ')}) {\n${asked.join('\n')}\n}\n${FRAGMENT}`;
    const variables = Object.fromEntries(
      refs.flatMap(({ number: pull }, index) => [
        [`o${index}`, names[index]?.[0]],
        [`r${index}`, names[index]?.[1]],
        [`n${index}`, pull],
      ]),
    );
    const { data, gaps } = await this.client.query(
      {
        text: query,
        // Older Enterprise Servers have the shorter numbers only.
        fallbackText: query.replaceAll(/\bfullDatabaseId(?!:)/g, 'fullDatabaseId: databaseId'),
        pageSizes: { size, replies: Math.ceil(size / 3) },
        schema: followedSchema,
      },
      variables,
    );
    if (gaps.codes().some((code) => !PARTIAL.includes(code))) {
      throw gaps.failure();
    }
    const found = refs.map((_, index) => {
      const repository = data[`c${index}`];
      return requireAnswer(followedPullSchema, repository === null ? null : repository?.pullRequest);
    });
    // What a policy hides is not gone; alone, as the next look asks, it does not fail the others.
    if (found.includes(null) && gaps.codes().length > 0) {
      throw gaps.failure();
    }
    return found;
  }
}

function headOf({ repository, fork, sourceBranch }: NewChangeRequest): string {
  return `${requireOwnerAndName(fork ?? repository)[0]}:${sourceBranch}`;
}

export function toFollowed(pull: GithubFollowed): FollowedChangeRequest {
  const { threadStates, reviewThreads, comments, reviews, latestOpinionatedReviews } = pull;
  const opinions = latestOpinionatedReviews.nodes.map(({ state }) => state);
  return boundFollowed({
    state: STATES[pull.state],
    url: pull.url,
    headSha: pull.headRefOid,
    conflicts: toConflicts(pull.mergeable),
    approved:
      // GitHub gives no decision when no rule asks for reviews.
      pull.reviewDecision === null
        ? opinions.includes('APPROVED') && !opinions.includes('CHANGES_REQUESTED')
        : pull.reviewDecision === 'APPROVED',
    checks: toChecks(pull),
    comments: withoutCrowd([
      ...reviewThreads.nodes.flatMap((thread) =>
        thread.comments.nodes.filter(isPublic).map((comment) => ({
          ...toComment('discussion_r', comment),
          threadId: thread.root.nodes[0]?.fullDatabaseId ?? comment.fullDatabaseId,
          path: thread.path,
          line: thread.line ?? thread.originalLine,
          resolved: thread.isResolved,
        })),
      ),
      ...comments.nodes
        .filter((comment) => !comment.isMinimized)
        .map((comment) => toComment('issuecomment-', comment)),
      ...reviews.nodes.filter(isPublic).map((review) => {
        const { isBot, mayWrite, ...comment } = toComment('pullrequestreview-', review);
        return {
          ...comment,
          // Who asks for changes, app or person, wants them.
          isBot: isBot && review.state !== 'CHANGES_REQUESTED',
          mayWrite: review.authorCanPushToRepository ?? mayWrite,
        };
      }),
    ]),
    truncated:
      hidesChecks(pull) ||
      isCut(threadStates) ||
      openThreads(threadStates.nodes.map(({ comments: root, ...thread }) => ({ ...thread, root }))) >
        openThreads(reviewThreads.nodes),
  });
}

/** Drops strangers' comments when there are more than are kept. */
function withoutCrowd(comments: readonly (FollowedComment & { isStranger: boolean })[]): FollowedComment[] {
  const kept = comments.filter(({ isStranger }) => !isStranger || comments.length <= MAX_COMMENTS);
  return kept.map(({ isStranger: _isStranger, ...comment }) => comment);
}

function isCrowded({ reviewThreads, comments, reviews }: GithubFollowed): boolean {
  const roots = reviewThreads.nodes.flatMap(({ root }) => root.nodes.slice(0, 1));
  return [roots, comments.nodes, reviews.nodes].some(
    (nodes) =>
      nodes.length >= BATCH.pageSize &&
      nodes.some(({ authorAssociation }) => STRANGERS.includes(authorAssociation)),
  );
}

const STATES = { OPEN: 'open', MERGED: 'merged', CLOSED: 'closed' } as const;

interface Thread {
  isResolved: boolean;
  root: { nodes: { authorAssociation: string | null }[] };
}

/** Those of strangers hold up nothing. */
function openThreads(threads: readonly Thread[]): number {
  const isOpen = ({ isResolved, root }: Thread): boolean =>
    !isResolved && !STRANGERS.includes(root.nodes[0]?.authorAssociation ?? null);
  return threads.filter(isOpen).length;
}

function isPublic({ state, isMinimized }: { state: string | null; isMinimized: boolean }): boolean {
  return state !== 'PENDING' && !isMinimized;
}

function toComment(prefix: string, comment: GithubComment): FollowedComment & { isStranger: boolean } {
  return {
    isStranger: !comment.viewerDidAuthor && STRANGERS.includes(comment.authorAssociation),
    // Three sequences of numbers, told apart as in the addresses of GitHub's pages.
    id: `${prefix}${comment.fullDatabaseId}`,
    threadId: null,
    // Accounts that were deleted.
    author: comment.author.login ?? 'ghost',
    own: comment.viewerDidAuthor,
    isBot: comment.author.kind === 'Bot',
    // Members may have the right to read alone, and those whose membership is private are shown as others are
    // (https://github.com/warpdotdev/oz-for-oss/issues/290).
    mayWrite: comment.authorAssociation === 'OWNER' ? true : null,
    body: comment.body,
    path: null,
    line: null,
    url: comment.url,
    createdAt: comment.createdAt,
    resolved: null,
  };
}
