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
  ProviderCall,
} from '../git-provider.js';
import type { RetryTiming } from '../provider-http.js';
import { requireOwnerAndName } from '../repository-name.js';
import {
  fieldsOf,
  flag,
  instant,
  list,
  number,
  object,
  requiredId,
  requiredInstant,
  requiredName,
  text,
} from '../response-schema.js';
import type { BitbucketIdentity, BitbucketDetails } from './bitbucket.details.js';
import type { BitbucketClient, BitbucketList } from './bitbucket.client.js';
import { newestRuns, newPullRequest, openBetween, toOpenedPullRequest } from './bitbucket.mapper.js';
import { mainBranchSchema, openedPullRequestSchema, openedPullRequestsSchema } from './bitbucket.schema.js';

const BATCH = { batch: 1, pageSize: 50 };
const MAX_PAGES = 3;
/** Before the number of a task, which is none of a comment. */
const TASK = 'task-';

const pullRequestSchema = z.object({
  task_count: number,
  state: z.enum(['OPEN', 'MERGED', 'DECLINED', 'SUPERSEDED']),
  links: object({ html: object({ href: requiredPageUrl }) }),
  /** The commit is missing once the branch is deleted. */
  source: object({ commit: object({ hash: text }) }),
  destination: object({ commit: object({ hash: text }) }),
  participants: list(object({ approved: flag, state: text })),
});

const sourceSchema = object({ source: object({ repository: object({ full_name: text }) }) });
const PIPELINE = /\/([^/]+\/[^/]+?)\/(?:addon\/)?pipelines\/(?:results\/|home#!\/results\/)(\d+)/;

const statusSchema = object({
  key: requiredName,
  name: text,
  state: text,
  url: pageUrl,
  updated_on: instant,
});

const commentSchema = object({
  id: requiredId,
  deleted: flag,
  pending: flag,
  parent: z.object({ id: requiredId }).nullable().catch(null),
  resolution: z.object({}).nullable().catch(null),
  inline: z.object({ path: text, to: lineNumber, from: lineNumber }).nullable().catch(null),
  user: object({ type: text, uuid: text, nickname: text }),
  content: object({ raw: commentBody }),
  created_on: requiredInstant,
  links: object({ html: object({ href: pageUrl }) }),
});
type BitbucketFollowedComment = z.output<typeof commentSchema>;

const taskSchema = object({
  id: requiredId,
  state: text,
  comment: z.object({ id: requiredId }).nullable().catch(null),
  creator: object({ type: text, uuid: text, nickname: text }),
  content: object({ raw: commentBody }),
  created_on: requiredInstant,
  links: object({ html: object({ href: pageUrl }) }),
});
type BitbucketTask = z.output<typeof taskSchema>;

const stepsSchema = list(object({ uuid: requiredName, state: object({ result: object({ name: text }) }) }));

/** What one pull request's requests answered. */
export interface BitbucketFollowed {
  pull: z.output<typeof pullRequestSchema>;
  statuses: BitbucketList<z.output<typeof statusSchema>>;
  comments: BitbucketList<BitbucketFollowedComment>;
  /** Empty where none is open. */
  tasks: BitbucketList<BitbucketTask>;
  conflicts: Signal;
}

export const followedParts = {
  pullRequestSchema,
  statuses: list(statusSchema),
  comments: list(commentSchema),
  tasks: list(taskSchema),
};
const NO_TASKS: BitbucketList<BitbucketTask> = { values: [], complete: true };

/** Reads pull requests with four requests each, a few at a time. */
export class BitbucketChanges extends ChangeRequestHost<BitbucketClient> {
  /** @param reader whose account it is, for what only reading needs */
  constructor(
    client: BitbucketClient,
    waiting: { call: ProviderCall; timing: RetryTiming },
    private readonly reader: () => Promise<{ details: BitbucketDetails; identity: BitbucketIdentity }>,
  ) {
    super(client, waiting);
  }

  protected async defaultBranch(repository: string): Promise<string | null> {
    const path = `${repositoryPath(repository)}?fields=${fieldsOf(mainBranchSchema)}`;
    return requireRepository(await this.client.find(path, mainBranchSchema)).mainbranch.name;
  }

  protected async findOpen(
    { repository, fork, sourceBranch }: NewChangeRequest,
    targetBranch: string,
  ): Promise<OpenedChangeRequest | null> {
    const query = new URLSearchParams({
      q: openBetween(fork ?? repository, sourceBranch, targetBranch),
      fields: fieldsOf(openedPullRequestsSchema),
      pagelen: '1',
    });
    const path = `${repositoryPath(repository)}/pullrequests?${query.toString()}`;
    const page = requireRepository(await this.client.find(path, openedPullRequestsSchema));
    const [found] = page.values;
    return found ? toOpenedPullRequest(found) : null;
  }

  protected async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const path = `${repositoryPath(request.repository)}/pullrequests`;
    const created = await this.client.change(path, newPullRequest(request, targetBranch));
    return requireOpened(toOpenedPullRequest(openedPullRequestSchema.parse(created)), this.client.origin);
  }

  async read(refs: readonly ChangeRequestRef[]): Promise<(FollowedChangeRequest | null)[]> {
    const { details, identity } = await this.reader();
    return await readEach(refs, (ref) => this.readOne(ref, details, identity.uuid));
  }

  /** Pipelines keep the log of each step; the last one that failed tells why. */
  async output(ref: ChangeRequestRef, { url }: FollowedCheck): Promise<string> {
    const [, place = '', run] = PIPELINE.exec(url ?? '') ?? [];
    if (run === undefined) {
      return '';
    }
    // Anybody who may write to a fork names the pages of its statuses: no other pipeline of the user is read for them.
    const known = [ref.repository, await this.sourceOf(ref)].map((each) => each?.toLowerCase());
    const isOwn = known.includes(place.toLowerCase());
    const path = `${repositoryPath(isOwn ? place : ref.repository)}/pipelines/${run}/steps`;
    const steps = await this.client.list(`${path}/?pagelen=100`, stepsSchema, { maxPages: 1 });
    const failed = steps?.values.findLast(({ state }) => state.result.name === 'FAILED');
    return failed ? ((await this.client.tail(`${path}/${encodeURIComponent(failed.uuid)}/log`)) ?? '') : '';
  }

  async reply(
    ref: ChangeRequestRef,
    { id, threadId }: Pick<FollowedComment, 'id' | 'threadId'>,
    body: string,
  ): Promise<{ id: string }> {
    const parent = id.startsWith(TASK) ? threadId : id;
    const comment = { content: { raw: body }, ...(parent !== null && { parent: { id: Number(parent) } }) };
    const written = await this.client.change(`${pathOf(ref)}/comments`, comment);
    return writtenComment(written);
  }

  private async sourceOf(ref: ChangeRequestRef): Promise<string | null> {
    const found = await this.client.find(`${pathOf(ref)}?fields=${fieldsOf(sourceSchema)}`, sourceSchema);
    return found?.source.repository.full_name ?? null;
  }

  private async readOne(
    ref: ChangeRequestRef,
    details: BitbucketDetails,
    userUuid: string,
  ): Promise<FollowedChangeRequest | null> {
    const path = pathOf(ref);
    const sent = await this.client.find(`${path}?fields=${fieldsOf(pullRequestSchema)}`, z.unknown());
    const pull = requireAnswer(pullRequestSchema, sent);
    if (pull === null) {
      return null;
    }
    const [source, destination] = [pull.source.commit.hash, pull.destination.commit.hash];
    const commits = source === null || destination === null ? null : `${source}..${destination}`;
    const [conflicts, statuses, [comments], tasks] = await Promise.all([
      pull.state === 'OPEN' ? details.conflicts({ commits }, path) : ('no' as const),
      this.client.list(`${path}/statuses?pagelen=100`, followedParts.statuses, {
        maxPages: MAX_PAGES,
      }),
      readInBatches([ref], BATCH, async (_, size) => [await this.comments(path, size)]),
      pull.task_count
        ? this.client.list(`${path}/tasks?pagelen=50`, followedParts.tasks, {
            maxPages: 1,
          })
        : NO_TASKS,
    ]);
    const open = tasks ?? { values: [], complete: false };
    return statuses && comments
      ? toFollowed({ pull, statuses, comments, tasks: open, conflicts }, userUuid)
      : null;
  }

  private async comments(
    path: string,
    size: number,
  ): Promise<BitbucketList<BitbucketFollowedComment> | null> {
    const query = `sort=-created_on&pagelen=${size}`;
    return await this.client.list(`${path}/comments?${query}`, followedParts.comments, {
      maxPages: MAX_PAGES,
    });
  }
}

export function toFollowed(
  { pull, statuses, comments, tasks, conflicts }: BitbucketFollowed,
  userUuid: string,
): FollowedChangeRequest {
  const opinions = pull.participants;
  const head = pull.source.commit.hash ?? '';
  const byId = new Map(comments.values.map((comment) => [comment.id, comment]));
  return boundFollowed({
    state: pull.state === 'OPEN' ? 'open' : pull.state === 'MERGED' ? 'merged' : 'closed',
    url: pull.links.html.href,
    headSha: head,
    conflicts,
    approved:
      opinions.some(({ approved }) => approved) &&
      !opinions.some(({ state }) => state === 'changes_requested'),
    checks: toChecks(head, statuses.values),
    comments: [
      ...tasks.values.filter(({ state }) => state === 'UNRESOLVED').map((task) => toTask(task, userUuid)),
      ...comments.values
        .filter(({ deleted, pending }) => !deleted && !pending)
        .map((comment) => {
          const root = rootOf(comment, byId);
          const { inline } = root;
          return {
            id: comment.id,
            threadId: root.parent?.id ?? root.id,
            author: comment.user.nickname ?? 'unknown',
            own: comment.user.uuid === userUuid,
            isBot: comment.user.type === 'app_user',
            mayWrite: null,
            account: comment.user.uuid ?? '',
            body: comment.content.raw,
            path: inline?.path ?? null,
            line: inline?.to ?? inline?.from ?? null,
            url: comment.links.html.href,
            createdAt: comment.created_on,
            resolved: inline ? root.resolution !== null : null,
          };
        }),
    ],
    truncated: !statuses.complete || !comments.complete || !tasks.complete,
  });
}

function toTask(
  { id, comment, creator, content, created_on: createdAt, links }: BitbucketTask,
  userUuid: string,
): FollowedComment {
  return {
    id: `${TASK}${id}`,
    threadId: comment?.id ?? null,
    author: creator.nickname ?? 'unknown',
    own: creator.uuid === userUuid,
    isBot: creator.type === 'app_user',
    mayWrite: null,
    account: creator.uuid ?? '',
    body: `Task: ${content.raw}`,
    path: null,
    line: null,
    url: links.html.href,
    createdAt,
    resolved: false,
  };
}

/** The comment that begins the thread, or the first one of it that was read. */
function rootOf(
  comment: BitbucketFollowedComment,
  byId: ReadonlyMap<string, BitbucketFollowedComment>,
): BitbucketFollowedComment {
  let root = comment;
  // Bounded, since nothing but the host keeps parents from being a circle.
  for (let depth = 0; depth < byId.size; depth += 1) {
    root = byId.get(root.parent?.id ?? '') ?? root;
  }
  return root;
}

function toChecks(head: string, statuses: readonly z.output<typeof statusSchema>[]): FollowedCheck[] {
  return newestRuns(statuses).map(({ key, name, state, url }) => ({
    id: `${head} ${key}`,
    name: name ?? key,
    state: state === 'SUCCESSFUL' ? 'passed' : state === 'INPROGRESS' ? 'pending' : 'failed',
    url,
  }));
}

function pathOf({ repository, number: id }: ChangeRequestRef): string {
  return `${repositoryPath(repository)}/pullrequests/${id}`;
}

/** @throws GitProviderError with a reason for a name that is not `workspace/slug` */
export function repositoryPath(repository: string): string {
  return `/repositories/${requireOwnerAndName(repository).map(encodeURIComponent).join('/')}`;
}
