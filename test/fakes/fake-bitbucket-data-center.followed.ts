import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { pageOf } from './fake-change-requests.js';
import { refsOf } from './fake-bitbucket-data-center.forks.js';
import { failure } from './fake-bitbucket-data-center.lists.js';
import { addComment, addReply, changeIn, checksOf, followedOf, isOpen, rootOf } from './fake-followed.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeComment, FakeWorld } from './fake-world.js';

const STATES = { open: 'OPEN', merged: 'MERGED', closed: 'DECLINED' };
const BUILD_STATES = { passed: 'SUCCESSFUL', failed: 'FAILED', pending: 'INPROGRESS' };
const PATH =
  /^\/api\/latest\/projects\/([^/]+)\/repos\/([^/]+)\/pull-requests\/(\d+)(?:\/(merge|activities|comments))?$/;

/** One pull request and what belongs to it, and the builds of a commit; null for every other path. */
export function answerFollowed(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [, commit] = /^\/build-status\/latest\/commits\/(\w+)$/.exec(path) ?? [];
  if (commit !== undefined && commit !== 'stats') {
    return { body: { isLastPage: true, values: buildsOf(world, commit) } };
  }
  const [matched, project, slug, number, part] = PATH.exec(path) ?? [];
  if (matched === undefined) {
    return null;
  }
  const change = changeIn(world, `${project}/${slug}`, Number(number));
  if (!change) {
    return failure(404, 'No such pull request');
  }
  switch (part) {
    case undefined:
      return { body: pullRequest(world, change) };
    case 'merge':
      return isOpen(change) ? { body: merge(change) } : failure(409, 'The pull request is not open');
    case 'activities':
      return { body: activities(change, Number(request.query.get('limit'))) };
    default:
      return write(world, change, request);
  }
}

function pullRequest(world: FakeWorld, change: FakeChangeRequest) {
  const refs = refsOf(world, change.repository, change.number);
  const { state, head, approvedBy, changesRequestedBy } = followedOf(change);
  return {
    id: change.number,
    state: STATES[state],
    open: state === 'open',
    ...refs,
    fromRef: { ...refs?.fromRef, latestCommit: head },
    links: { self: [{ href: pageOf(change) }] },
    reviewers: [
      ...approvedBy.map((name) => ({ user: { name }, status: 'APPROVED' })),
      ...changesRequestedBy.map((name) => ({ user: { name }, status: 'NEEDS_WORK' })),
    ],
  };
}

function merge({ conflicts }: FakeChangeRequest) {
  if (conflicts === 'unknown') {
    return { canMerge: false, outcome: 'UNKNOWN', vetoes: [] };
  }
  const conflicted = conflicts === 'yes' || conflicts === 'later';
  return { canMerge: !conflicted, conflicted, outcome: conflicted ? 'CONFLICTED' : 'CLEAN', vetoes: [] };
}

function buildsOf(world: FakeWorld, commit: string) {
  return world.changeRequests
    .filter((change) => followedOf(change).head === commit)
    .flatMap(checksOf)
    .map(({ id, name, state }) => ({
      key: name,
      name,
      state: BUILD_STATES[state],
      url: `https://ci.example/builds/${id}`,
      dateAdded: Date.parse('2026-11-21T12:00:00Z'),
    }));
}

/** Newest first. A reply is an activity of its own, and is listed below the comment that it answers. */
function activities(change: FakeChangeRequest, limit: number) {
  const { comments } = followedOf(change);
  const added = comments
    .toSorted((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt))
    .toReversed()
    .map((comment) => {
      const { path, line } = comment;
      return {
        id: comment.id,
        action: 'COMMENTED',
        commentAction: 'ADDED',
        comment: toComment(change, comment),
        ...(path !== null &&
          comment.root === comment.id && {
            commentAnchor: { path, line, lineType: 'ADDED', fileType: 'TO' },
          }),
      };
    });
  const all = [...added, { id: 1, action: 'OPENED', createdDate: 0 }];
  return { size: Math.min(limit, all.length), isLastPage: all.length <= limit, values: all.slice(0, limit) };
}

function toComment(change: FakeChangeRequest, comment: FakeComment): Record<string, unknown> {
  const { id, root, author, isBot, body, createdAt } = comment;
  const replies = followedOf(change).comments.filter((other) => other.root === id && other !== comment);
  return {
    id,
    version: 0,
    text: body,
    author: { name: author, slug: author, type: isBot ? 'SERVICE' : 'NORMAL' },
    createdDate: Date.parse(createdAt),
    severity: 'NORMAL',
    state: 'OPEN',
    threadResolved: rootOf(change, comment).resolved,
    comments: root === id ? replies.map((reply) => toComment(change, reply)) : [],
  };
}

function write(world: FakeWorld, change: FakeChangeRequest, request: FakeRequest): FakeResponse {
  if (request.headers['x-atlassian-token'] !== 'no-check') {
    return failure(403, 'XSRF check failed');
  }
  const body: unknown = JSON.parse(request.body);
  const text = jsonText(body, 'text') ?? '';
  const parent = jsonAt(body, 'parent', 'id');
  const to = followedOf(change).comments.find(({ id }) => id === parent);
  if (parent !== undefined && !to) {
    return failure(404, 'The comment does not exist');
  }
  const { login } = world.user;
  const written = to ? addReply(change, to, login, text) : addComment(change, login, text);
  return { status: 201, body: toComment(change, written) };
}
