import { jsonText } from '@slipway/common/json-access.js';
import { pageOf, repositoryIn } from './fake-change-requests.js';
import { addComment, addReply, changeIn, checksOf, followedOf, rootOf } from './fake-followed.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeCheck, FakeComment, FakeWorld } from './fake-world.js';

export interface Page {
  first?: number;
  last?: number;
}

const JOB_STATES = { passed: 'SUCCESS', failed: 'FAILED', pending: 'RUNNING' };
const MERGE_STATES = { open: 'opened', merged: 'merged', closed: 'closed' };

/** The members of a merge request that say how it stands, for resolvers of graphql-js. */
export function followedMembers(change: FakeChangeRequest) {
  const { state, head, comments, approvedBy, changesRequestedBy } = followedOf(change);
  const jobs = checksOf(change);
  const roots = comments.filter((comment) => rootOf(change, comment) === comment);
  const threads = roots.filter(({ kind }) => kind === 'thread');
  return {
    resolvableDiscussionsCount: threads.length,
    resolvedDiscussionsCount: threads.filter(({ resolved }) => resolved).length,
    state: MERGE_STATES[state],
    webUrl: pageOf(change),
    diffHeadSha: head,
    detailedMergeStatus: changesRequestedBy.length > 0 ? 'REQUESTED_CHANGES' : 'MERGEABLE',
    approvedBy: (page: Page) =>
      connection(
        approvedBy.map((login) => ({ id: login })),
        page,
      ),
    headPipeline:
      jobs.length === 0
        ? null
        : {
            id: 'gid://gitlab/Ci::Pipeline/1',
            status: pipelineStatus(jobs),
            jobs: (page: Page) =>
              connection(
                jobs.map((check) => job(change, check)),
                page,
              ),
          },
    discussions: (page: Page) =>
      connection(
        roots.map((root) => ({
          id: `gid://gitlab/${root.kind === 'thread' ? 'DiffDiscussion' : 'IndividualNoteDiscussion'}/${threadId(root)}`,
          resolvable: root.kind === 'thread',
          resolved: root.kind === 'thread' && root.resolved,
          notes: (window: Page) =>
            connection(
              comments.filter((comment) => comment.root === root.id).map((comment) => note(change, comment)),
              window,
            ),
        })),
        page,
      ),
  };
}

function pipelineStatus(jobs: readonly FakeCheck[]): string {
  const states = jobs.map(({ state }) => state);
  return states.includes('pending') ? 'RUNNING' : states.includes('failed') ? 'FAILED' : 'SUCCESS';
}

function job(change: FakeChangeRequest, { id, name, state }: FakeCheck) {
  return {
    id: `gid://gitlab/Ci::Build/${id}`,
    name,
    status: JOB_STATES[state],
    allowFailure: false,
    // Those for a fork run there.
    webPath: `/${change.fork ?? change.repository}/-/jobs/${id}`,
  };
}

/** GitLab's ids have 40 hexadecimal digits. */
function threadId({ id }: FakeComment): string {
  return id.toString(16).padStart(40, '0');
}

function note(
  change: FakeChangeRequest,
  { id, author, isBot, mayWrite, body, path, line, createdAt }: FakeComment,
) {
  return {
    id: `gid://gitlab/${path === null ? 'Note' : 'DiffNote'}/${id}`,
    system: false,
    author: { id: `gid://gitlab/User/${author}`, username: author, bot: isBot },
    maxAccessLevelOfAuthor: mayWrite ? 'Developer' : 'Guest',
    body,
    url: `${pageOf(change)}#note_${id}`,
    createdAt,
    position: path === null ? null : { filePath: path, newLine: line, oldLine: null },
  };
}

/** Logs and answers over REST; null for every other path (below `/v4`). */
export function answerFollowed(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [logOf, project = '', job] = /^\/projects\/([^/]+)\/jobs\/(\d+)\/trace$/.exec(path) ?? [];
  if (logOf !== undefined) {
    const check = world.changeRequests
      .filter(({ fork, repository }) => (fork ?? repository) === decodeURIComponent(project))
      .flatMap((change) => followedOf(change).checks)
      .find(({ id }) => id === Number(job));
    return check ? { headers: { 'content-type': 'text/plain' }, body: check.log } : missing();
  }
  const [answered, name = '', number, thread] =
    /^\/projects\/([^/]+)\/merge_requests\/(\d+)\/discussions\/(\w+)\/notes$/.exec(path) ?? [];
  if (answered === undefined) {
    return null;
  }
  const repository = repositoryIn(world, decodeURIComponent(name));
  const change = repository && changeIn(world, repository.name, Number(number));
  const root = change && followedOf(change).comments.find((comment) => threadId(comment) === thread);
  if (!change || !root || request.method !== 'POST') {
    return missing();
  }
  const body = jsonText(JSON.parse(request.body), 'body') ?? '';
  const { id } =
    root.kind === 'thread'
      ? addReply(change, root, world.user.login, body)
      : addComment(change, world.user.login, body, { root: root.id });
  return { status: 201, body: { id, type: 'DiscussionNote', body } };
}

function missing(): FakeResponse {
  return { status: 404, body: { message: '404 Not found' } };
}

export function connection<T>(all: T[], { first, last }: Page) {
  const nodes = last === undefined ? all.slice(0, Math.min(first ?? 100, 100)) : all.slice(-last);
  const isCut = nodes.length < all.length;
  return {
    nodes,
    count: all.length,
    pageInfo: {
      hasNextPage: isCut && last === undefined,
      hasPreviousPage: isCut && last !== undefined,
      startCursor: null,
      endCursor: last === undefined && nodes.length > 0 ? String(nodes.length) : null,
    },
  };
}
