import { z } from 'zod';
import { namedValues } from '@slipway/common/validation/named-values.js';
import {
  ChangeRequestHost,
  requireOpened,
  requireRepository,
  boundFollowed,
  commentBody,
  lineNumber,
  MAX_FOLLOWED_CHECKS,
  pageUrl,
  requiredPageUrl,
  readInBatches,
  requireAnswer,
  writtenComment,
} from '../change-requests.js';
import {
  type NewChangeRequest,
  type OpenedChangeRequest,
  GitProviderError,
  type ChangeRequestRef,
  type FollowedChangeRequest,
  type FollowedCheck,
  type FollowedComment,
} from '../git-provider.js';
import { repositorySegments } from '../repository-name.js';
import { requireRepositoryPath } from '../repository-name.js';
import {
  flag,
  list,
  number,
  object,
  requiredInstant,
  requiredName,
  text,
  requireFitting,
} from '../response-schema.js';
import type { GitlabClient } from './gitlab.client.js';
import {
  comesFrom,
  newMergeRequest,
  toOpenedMergeRequest,
  isUnchecked,
  mapConflicts,
} from './gitlab.mapper.js';
import { restMergeRequestSchema, restMergeRequestsSchema, restProjectSchema } from './gitlab.schema.js';

/** One page is enough: a pair of branches has few requests, even with those of forks. */
const PAGE_SIZE = 100;

/** Each costs about 70 of a question's 250 points (https://docs.gitlab.com/api/graphql/#limits). */
const BATCH = { batch: 3, pageSize: 50 };
const WRITERS: readonly (string | null)[] = ['Owner', 'Maintainer', 'Developer'];
const MEMBERS: readonly (string | null)[] = [...WRITERS, 'Reporter', 'Planner', 'Guest'];
/** GitLab's own reviewer, which is a member of no project; accounts of tokens have names of another form. */
const REVIEWER = 'GitLabDuo';
/** Manual jobs wait for a person, and the pipeline does not wait for them. */
const PASSED: readonly (string | null)[] = ['SUCCESS', 'SKIPPED', 'MANUAL'];
const FAILED: readonly (string | null)[] = ['FAILED', 'CANCELED'];
const UNAPPROVED: readonly (string | null)[] = ['NOT_APPROVED', 'REQUESTED_CHANGES'];

/** The last part of an id such as `gid://gitlab/DiffNote/31`, which is the id of the REST API. */
const globalId = requiredName
  .transform((id) => id.slice(id.lastIndexOf('/') + 1))
  .pipe(z.string().regex(/^\w+$/));

const pageSchema = object({ hasNextPage: flag, hasPreviousPage: flag });

const noteSchema = object({
  id: globalId,
  system: flag,
  author: object({ username: text, bot: flag }),
  maxAccessLevelOfAuthor: text,
  body: commentBody,
  url: pageUrl,
  createdAt: requiredInstant,
  position: object({ filePath: text, newLine: lineNumber, oldLine: lineNumber }),
});

export const followedMergeSchema = z.object({
  state: z.enum(['opened', 'merged', 'closed', 'locked']),
  webUrl: requiredPageUrl,
  diffHeadSha: text,
  resolvableDiscussionsCount: number,
  resolvedDiscussionsCount: number,
  conflicts: flag,
  mergeStatusEnum: text,
  detailedMergeStatus: text,
  approvedBy: object({ nodes: list(object({ id: requiredName })) }),
  headPipeline: object({
    status: text,
    jobs: object({
      pageInfo: pageSchema,
      nodes: list(
        object({ id: globalId, name: requiredName, status: text, allowFailure: flag, webPath: text }),
      ),
    }),
  }),
  discussions: object({
    pageInfo: pageSchema,
    nodes: list(
      object({
        id: globalId,
        resolvable: flag,
        resolved: flag,
        notes: object({ nodes: list(noteSchema) }),
      }),
    ),
  }),
});
export type GitlabFollowed = z.output<typeof followedMergeSchema>;

const projectSchema = z.object({ mergeRequest: z.unknown() }).nullable();
const viewerSchema = object({ username: text });
const followedSchema = namedValues(z.string(), z.unknown()).catch({});

const COUNTERS = 'resolvableDiscussionsCount resolvedDiscussionsCount';
const MERGE_REQUEST = `
    ${COUNTERS}
    state webUrl diffHeadSha conflicts mergeStatusEnum detailedMergeStatus
    approvedBy(first: 1) { nodes { id } }
    headPipeline { status jobs(retried: false, first: ${MAX_FOLLOWED_CHECKS - 1}) {
      pageInfo { hasNextPage hasPreviousPage }
      nodes { id name status allowFailure webPath }
    } }
    discussions(last: $size) {
      pageInfo { hasNextPage hasPreviousPage }
      nodes {
        id resolvable resolved
        notes(last: $size) {
          nodes {
            id system author { username bot } maxAccessLevelOfAuthor body url createdAt
            position { filePath newLine oldLine }
          }
        }
      }
    }`;

/** Reads several merge requests with one GraphQL query (GitLab 15.3 and later). Everything else uses REST. */
export class GitlabChanges extends ChangeRequestHost<GitlabClient> {
  protected async defaultBranch(repository: string): Promise<string | null> {
    return (await this.project(repository)).default_branch;
  }

  protected async findOpen(
    { repository, fork, sourceBranch }: NewChangeRequest,
    targetBranch: string,
  ): Promise<OpenedChangeRequest | null> {
    const query = new URLSearchParams({
      state: 'opened',
      source_branch: sourceBranch,
      target_branch: targetBranch,
      per_page: String(PAGE_SIZE),
    });
    const path = `${projectPath(repository)}/merge_requests?${query.toString()}`;
    const listed = await this.client.find(path, restMergeRequestsSchema);
    const source = fork === undefined ? null : (await this.project(fork)).id;
    const found = requireRepository(listed).find((each) => comesFrom(source, each));
    return found ? toOpenedMergeRequest(found) : null;
  }

  protected async create(request: NewChangeRequest, targetBranch: string): Promise<OpenedChangeRequest> {
    const { fork, repository } = request;
    // Asked of the project that has the branch.
    const target = fork === undefined ? null : (await this.project(repository)).id;
    const body = newMergeRequest(request, targetBranch, target);
    const created = await this.client.change(`${projectPath(fork ?? repository)}/merge_requests`, body);
    const opened = toOpenedMergeRequest(restMergeRequestSchema.parse(created));
    return requireOpened(opened, this.client.origin);
  }

  async read(refs: readonly ChangeRequestRef[]): Promise<(FollowedChangeRequest | null)[]> {
    const found = await readInBatches(refs, BATCH, (some, pageSize) => this.readSome(some, pageSize));
    return await Promise.all(refs.map(async (ref, index) => found[index] ?? (await this.readMoved(ref))));
  }

  /** Jobs for a request from a fork run in the fork as a rule: their pages tell. */
  async output({ repository }: ChangeRequestRef, { id, url }: FollowedCheck): Promise<string> {
    const page = url === null ? '' : decodeURIComponent(new URL(url).pathname);
    const below = page.slice(new URL(this.client.root).pathname.replace(/\/api$/, '').length);
    const [, place = ''] = /^\/(.+)\/-\/jobs\/\d+$/.exec(below) ?? [];
    const project = repositorySegments(place) ? place : repository;
    return (await this.client.tail(`${projectPath(project)}/jobs/${encodeURIComponent(id)}/trace`)) ?? '';
  }

  async reply(
    ref: ChangeRequestRef,
    { threadId }: Pick<FollowedComment, 'threadId'>,
    body: string,
  ): Promise<{ id: string }> {
    const thread = threadId === null ? '' : `/discussions/${encodeURIComponent(threadId)}`;
    const written = await this.client.change(`${pathOf(ref)}${thread}/notes`, { body });
    return writtenComment(written);
  }

  /** GraphQL knows projects by their present paths alone, REST by those before as well; null for one that is gone. */
  private async readMoved(ref: ChangeRequestRef): Promise<FollowedChangeRequest | null> {
    const project = await this.client.find(projectPath(ref.repository), restProjectSchema);
    const repository = project?.path_with_namespace ?? ref.repository;
    return repository.toLowerCase() === ref.repository.toLowerCase()
      ? null
      : ((await this.readSome([{ ...ref, repository }], BATCH.pageSize))[0] ?? null);
  }

  private async project(repository: string): Promise<z.output<typeof restProjectSchema>> {
    return requireRepository(await this.client.find(projectPath(repository), restProjectSchema));
  }

  private async readSome(
    refs: readonly ChangeRequestRef[],
    size: number,
  ): Promise<(FollowedChangeRequest | null)[]> {
    const declared = refs.map((_, index) => `$p${index}: ID!, $n${index}: String!`);
    const asked = refs.map(
      (_, index) =>
        `c${index}: project(fullPath: $p${index}) { mergeRequest(iid: $n${index}) {${MERGE_REQUEST}} }`,
    );
    const query = `query Followed($size: Int!, ${declared.join(', ')}) {\ncurrentUser { username }\n${asked.join('\n')}\n}`;
    const variables = Object.fromEntries(
      refs.flatMap(({ repository, number: iid }, index) => [
        [`p${index}`, requireRepositoryPath(repository)],
        [`n${index}`, String(iid)],
      ]),
    );
    const fallback = query.replaceAll(COUNTERS, '');
    const { data, gaps } = await this.client.ask(query, fallback, followedSchema, { size, ...variables });
    if (/complexity/i.test(gaps.reasons().unsupported ?? '')) {
      throw new GitProviderError('query_too_large');
    }
    const { username } = viewerSchema.parse(data['currentUser']);
    if (username === null) {
      throw gaps.failure('unauthorized');
    }
    if (gaps.codes().some((code) => code !== 'insufficient_scope')) {
      throw gaps.failure();
    }
    const found = refs.map((_, index) => {
      const project = requireFitting(projectSchema, data[`c${index}`], 'the response is no project');
      return requireAnswer(followedMergeSchema, project === null ? null : project.mergeRequest);
    });
    const unchecked = refs.filter((_, index) => {
      const each = found[index];
      return each?.state === 'opened' && isUnchecked(each);
    });
    await Promise.all(unchecked.map((ref) => this.client.haveChecked(pathOf(ref))));
    return found.map((each) => each && toFollowed(each, username));
  }
}

function pathOf({ repository, number: iid }: ChangeRequestRef): string {
  return `${projectPath(repository)}/merge_requests/${iid}`;
}

/** @throws GitProviderError with a reason for anything but a full path of a project */
export function projectPath(repository: string): string {
  return `/v4/projects/${encodeURIComponent(requireRepositoryPath(repository))}`;
}

export function toFollowed(found: GitlabFollowed, user: string): FollowedChangeRequest {
  const { status, jobs } = found.headPipeline;
  const threads = found.discussions.nodes;
  return boundFollowed({
    state: found.state === 'merged' || found.state === 'closed' ? found.state : 'open',
    url: found.webUrl,
    headSha: found.diffHeadSha ?? '',
    conflicts: mapConflicts(found.mergeStatusEnum, found.conflicts),
    approved: found.approvedBy.nodes.length > 0 && !UNAPPROVED.includes(found.detailedMergeStatus),
    checks: toChecks(found),
    comments: threads.flatMap(({ id: threadId, resolvable, resolved, notes }) =>
      notes.nodes
        .filter(({ system }) => !system)
        .map(({ id, author, maxAccessLevelOfAuthor, body, url, createdAt, position }) => ({
          id,
          threadId,
          author: author.username ?? 'ghost',
          own: author.username === user,
          // Anybody can have a token of a project of theirs, whose account may comment in all public ones.
          isBot: author.bot && (author.username === REVIEWER || MEMBERS.includes(maxAccessLevelOfAuthor)),
          mayWrite: WRITERS.includes(maxAccessLevelOfAuthor),
          body,
          path: position.filePath,
          line: position.newLine ?? position.oldLine,
          url,
          createdAt,
          resolved: resolvable ? resolved : null,
        })),
    ),
    truncated: (jobs.pageInfo.hasNextPage && status === null) || mayHideThreads(found),
  });
}

/** The pipeline stands for jobs beyond those that are listed. */
function toChecks({ headPipeline: { status, jobs }, diffHeadSha, webUrl }: GitlabFollowed): FollowedCheck[] {
  const listed = jobs.nodes.map((job) => ({
    id: job.id,
    name: job.name,
    // One that waits for what a person has yet to start is created, not pending, and the pipeline waits with it.
    state: jobState(status === 'MANUAL' && job.status === 'CREATED' ? status : job.status, job.allowFailure),
    url: job.webPath !== null && URL.canParse(job.webPath, webUrl) ? new URL(job.webPath, webUrl).href : null,
  }));
  const isTold = listed.some(({ state }) => state === 'failed');
  const pipeline = { id: `pipeline-${diffHeadSha}`, name: 'the pipeline', url: `${webUrl}/pipelines` };
  return jobs.pageInfo.hasNextPage && status !== null && !isTold
    ? [...listed, { ...pipeline, state: jobState(status, false) }]
    : listed;
}

/** Pushes, labels and the like are discussions as well, so there being more of them says nothing. */
function mayHideThreads({ discussions, ...counts }: GitlabFollowed): boolean {
  const { resolvableDiscussionsCount: resolvable, resolvedDiscussionsCount: resolved } = counts;
  if (resolvable === null || resolved === null) {
    return discussions.pageInfo.hasPreviousPage;
  }
  const read = discussions.nodes.filter((thread) => thread.resolvable && !thread.resolved);
  return resolvable - resolved > read.length;
}

function jobState(status: string | null, allowFailure: boolean): FollowedCheck['state'] {
  if (PASSED.includes(status) || (allowFailure && FAILED.includes(status))) {
    return 'passed';
  }
  return FAILED.includes(status) ? 'failed' : 'pending';
}
