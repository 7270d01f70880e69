import { z } from 'zod';
import {
  ChangeRequestHost,
  requireOpened,
  requireRepository,
  boundFollowed,
  commentBody,
  lineNumber,
  pageUrl,
  requiredPageUrl,
  readEach,
  readInBatches,
  requireAnswer,
  writtenComment,
} from '../change-requests.js';
import type {
  NewChangeRequest,
  OpenedChangeRequest,
  Signal,
  ChangeRequestRef,
  FollowedChangeRequest,
  FollowedCheck,
  FollowedComment,
} from '../git-provider.js';
import { requireOwnerAndName } from '../repository-name.js';
import { flag, knownFlag, list, object, requiredId, requiredName, text } from '../response-schema.js';
import type { BitbucketDataCenterClient } from './bitbucket-data-center.client.js';
import {
  branchRef,
  type DataCenterAddress,
  goesTo,
  newPullRequest,
  toBranchName,
  toOpenedPullRequest,
} from './bitbucket-data-center.mapper.js';
import {
  branchSchema,
  openedPullRequestSchema,
  openedPullRequestsSchema,
} from './bitbucket-data-center.schema.js';

/** Activities: every push is one, too. */
const BATCH = { batch: 1, pageSize: 200 };
const MAX_REPLY_DEPTH = 20;

const pullRequestSchema = z.object({
  state: z.enum(['OPEN', 'MERGED', 'DECLINED']),
  fromRef: object({ latestCommit: requiredName }),
  links: object({ self: list(object({ href: requiredPageUrl })) }),
  reviewers: list(object({ status: text })),
});

const mergeSchema = object({ conflicted: knownFlag });

const buildsSchema = object({
  isLastPage: knownFlag,
  values: list(object({ key: requiredName, name: text, state: text, url: pageUrl })),
});

const anchorSchema = z.object({ path: text, line: lineNumber });

const commentMembers = {
  id: requiredId,
  text: commentBody,
  author: object({ name: text, type: text }),
  createdDate: z.number(),
  severity: text,
  state: text,
  threadResolved: flag,
};
const commentSchema = z.object({ ...commentMembers, comments: z.unknown().optional() });
type DataCenterComment = z.output<typeof commentSchema>;

const repliesSchema = list(commentSchema);

const activitiesSchema = object({
  isLastPage: knownFlag,
  values: list(
    object({
      action: text,
      commentAction: text,
      comment: commentSchema.nullable().catch(null),
      commentAnchor: anchorSchema.nullable().catch(null),
    }),
    BATCH.pageSize,
  ),
});

export const followedParts = { pullRequestSchema, mergeSchema, buildsSchema, activitiesSchema };

/** What one pull request's requests answered. */
export interface DataCenterFollowed {
  pull: z.output<typeof pullRequestSchema>;
  merge: z.output<typeof mergeSchema> | null;
  builds: z.output<typeof buildsSchema> | null;
  activities: z.output<typeof activitiesSchema> | null;
}

/** Reads pull requests with four requests each, a few at a time. */
export class BitbucketDataCenterChanges extends ChangeRequestHost<BitbucketDataCenterClient> {
  /** Reads the default branch's own resource, which exists since 7.5, else the older one below the branches. */
  protected async defaultBranch(repository: string): Promise<string | null> {
    const path = slugPath(repository);
    const branch =
      (await this.client.find(`${path}/default-branch`, branchSchema)) ??
      (await this.client.find(`${path}/branches/default`, branchSchema));
    return toBranchName(requireRepository(branch));
  }

  protected async findOpen(
    { repository, fork, sourceBranch }: NewChangeRequest,
    targetBranch: string,
  ): Promise<OpenedChangeRequest | null> {
    const query = new URLSearchParams({
      state: 'OPEN',
      direction: 'OUTGOING',
      at: branchRef(sourceBranch),
      limit: '100',
    });
    const path = `${slugPath(fork ?? repository)}/pull-requests?${query.toString()}`;
    const { values } = requireRepository(await this.client.find(path, openedPullRequestsSchema));
    const found = values.find((pull) => goesTo(pull, addressOf(repository), targetBranch));
    return found ? toOpenedPullRequest(found) : null;
  }

  protected async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const { fork, repository } = request;
    const created = await this.client.change(
      `${slugPath(repository)}/pull-requests`,
      newPullRequest(
        { from: addressOf(fork ?? repository), to: addressOf(repository) },
        request,
        targetBranch,
      ),
    );
    const opened = toOpenedPullRequest(openedPullRequestSchema.parse(created));
    return requireOpened(opened, this.client.origin);
  }

  async read(refs: readonly ChangeRequestRef[]): Promise<(FollowedChangeRequest | null)[]> {
    if (refs.length === 0) {
      return [];
    }
    const user = await this.client.userName();
    return await readEach(refs, (ref) => this.readOne(ref, user));
  }

  /** The server keeps no logs of builds. */
  output(): Promise<string> {
    return Promise.resolve('');
  }

  async reply(
    ref: ChangeRequestRef,
    { id }: Pick<FollowedComment, 'id'>,
    body: string,
  ): Promise<{ id: string }> {
    const comment = { text: body, parent: { id: Number(id) } };
    const written = await this.client.change(`${pathOf(ref)}/comments`, comment);
    return writtenComment(written);
  }

  private async readOne(ref: ChangeRequestRef, user: string): Promise<FollowedChangeRequest | null> {
    const path = pathOf(ref);
    const pull = requireAnswer(pullRequestSchema, await this.client.find(path, z.unknown()));
    if (pull === null) {
      return null;
    }
    const [merge, builds, [activities = null]] = await Promise.all([
      pull.state === 'OPEN' ? this.client.find(`${path}/merge`, mergeSchema) : null,
      this.client.find(
        `/build-status/latest/commits/${encodeURIComponent(pull.fromRef.latestCommit)}?limit=100`,
        buildsSchema,
      ),
      readInBatches([ref], BATCH, async (_, size) => [
        await this.client.find(`${path}/activities?limit=${size}`, activitiesSchema),
      ]),
    ]);
    return toFollowed({ pull, merge, builds, activities }, user);
  }
}

export function toFollowed(
  { pull, merge, builds, activities }: DataCenterFollowed,
  user: string,
): FollowedChangeRequest {
  const head = pull.fromRef.latestCommit;
  const url = pull.links.self[0]?.href ?? '';
  const statuses = pull.reviewers.map(({ status }) => status);
  return boundFollowed({
    state: pull.state === 'OPEN' ? 'open' : pull.state === 'MERGED' ? 'merged' : 'closed',
    url,
    headSha: head,
    conflicts: toConflicts(merge),
    approved: statuses.includes('APPROVED') && !statuses.includes('NEEDS_WORK'),
    checks: (builds?.values ?? []).map(({ key, name, state, url: buildUrl }) => ({
      id: `${head} ${key}`,
      name: name ?? key,
      state: buildState(state),
      url: buildUrl,
    })),
    comments: toComments(activities, url, user),
    truncated: activities?.isLastPage === false || builds?.isLastPage === false,
  });
}

/** The server tries the merge, if it did not yet. */
function toConflicts(merge: DataCenterFollowed['merge']): Signal {
  const conflicted = merge?.conflicted ?? null;
  return conflicted === null ? 'unknown' : conflicted ? 'yes' : 'no';
}

/** Replies are listed by themselves too; a deleted comment keeps the activity that added it. */
function toComments(
  activities: DataCenterFollowed['activities'],
  url: string,
  user: string,
): FollowedComment[] {
  const told = (activities?.values ?? []).filter(({ action }) => action === 'COMMENTED');
  const deleted = new Set(
    told.flatMap(({ commentAction, comment }) => (commentAction === 'DELETED' && comment ? comment.id : [])),
  );
  // Drafts are shown to the one who writes them, who is the user at times.
  const threads = told
    .flatMap(({ commentAction, comment, commentAnchor }) =>
      commentAction === 'ADDED' && comment ? threadOf(comment, commentAnchor) : [],
    )
    .filter(({ comment }) => comment.state !== 'PENDING');
  const found = new Map<string, FollowedComment>();
  // Those within their thread come later, and say where they belong.
  for (const { comment, root, anchor } of threads.toSorted((a, b) => a.depth - b.depth)) {
    found.set(comment.id, {
      id: comment.id,
      threadId: root.id,
      author: comment.author.name ?? 'unknown',
      own: comment.author.name === user,
      isBot: comment.author.type === 'SERVICE',
      mayWrite: null,
      body: comment.text,
      path: anchor?.path ?? null,
      line: anchor?.line ?? null,
      url: url === '' ? null : `${url}/overview?commentId=${comment.id}`,
      createdAt: comment.createdDate,
      resolved: isResolved(root, anchor !== null),
    });
  }
  return [...found.values()].filter(({ id }) => !deleted.has(id));
}

interface ThreadComment {
  comment: DataCenterComment;
  root: DataCenterComment;
  anchor: z.output<typeof anchorSchema> | null;
  depth: number;
}

function threadOf(root: DataCenterComment, anchor: ThreadComment['anchor']): ThreadComment[] {
  const found: ThreadComment[] = [];
  let level = [root];
  for (let depth = 0; depth < MAX_REPLY_DEPTH && level.length > 0; depth += 1) {
    found.push(...level.map((comment) => ({ comment, root, anchor, depth })));
    level = level.flatMap(({ comments }) => repliesSchema.parse(comments));
  }
  return found;
}

/** Tasks are comments that block, and have a state of their own. */
function isResolved(root: DataCenterComment, anchored: boolean): boolean | null {
  if (root.severity === 'BLOCKER') {
    return root.state === 'RESOLVED' || root.threadResolved;
  }
  return anchored ? root.threadResolved : null;
}

function buildState(state: string | null): FollowedCheck['state'] {
  if (state === 'SUCCESSFUL') {
    return 'passed';
  }
  return state === 'FAILED' || state === 'CANCELLED' ? 'failed' : 'pending';
}

function pathOf({ repository, number }: ChangeRequestRef): string {
  return `${slugPath(repository)}/pull-requests/${number}`;
}

export function slugPath(repository: string): string {
  const { project, slug } = addressOf(repository);
  return `/api/latest/projects/${encodeURIComponent(project)}/repos/${encodeURIComponent(slug)}`;
}

/** @throws GitProviderError with a reason for a name that is not `PROJ/slug` */
function addressOf(repository: string): DataCenterAddress {
  const [project, slug] = requireOwnerAndName(repository);
  return { project, slug };
}
