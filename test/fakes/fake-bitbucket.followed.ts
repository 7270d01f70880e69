import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { pageOf } from './fake-change-requests.js';
import { sidesOf } from './fake-forks.js';
import { addComment, addReply, changeIn, checksOf, followedOf, rootOf } from './fake-followed.js';
import type { FakeRequest, FakeResponse } from './fake-server.js';
import type { FakeChangeRequest, FakeCheck, FakeComment, FakeTask, FakeWorld } from './fake-world.js';

const STATES = { open: 'OPEN', merged: 'MERGED', closed: 'DECLINED' };
const STATUS_STATES = { passed: 'SUCCESSFUL', failed: 'FAILED', pending: 'INPROGRESS' };

/** One pull request, the logs of its pipelines, and answers to comments; null for every other path. */
export function answerFollowed(world: FakeWorld, request: FakeRequest, path: string): FakeResponse | null {
  const [, pulled, number] = /^\/repositories\/([^/]+\/[^/]+)\/pullrequests\/(\d+)$/.exec(path) ?? [];
  if (pulled !== undefined) {
    const change = changeIn(world, pulled, Number(number));
    return change ? { body: pullRequest(world, change) } : failure(404, 'Resource not found');
  }
  const [, tasked, which] = /^\/repositories\/([^/]+\/[^/]+)\/pullrequests\/(\d+)\/tasks$/.exec(path) ?? [];
  if (tasked !== undefined) {
    const change = changeIn(world, tasked, Number(which));
    return change
      ? { body: { values: followedOf(change).tasks.map(task) } }
      : failure(404, 'Resource not found');
  }
  const [, repository, run, step] =
    /^\/repositories\/([^/]+\/[^/]+)\/pipelines\/(\d+)\/steps\/(?:([^/]+)\/log)?$/.exec(path) ?? [];
  if (repository !== undefined) {
    const check = world.changeRequests
      .filter((change) => (change.fork ?? change.repository) === repository)
      .flatMap((change) => followedOf(change).checks)
      .find(({ id }) => id === Number(run));
    return check ? pipeline(check, step) : failure(404, 'Resource not found');
  }
  const [, commented, at] =
    /^\/repositories\/([^/]+\/[^/]+)\/pullrequests\/(\d+)\/comments$/.exec(path) ?? [];
  const change =
    commented === undefined || request.method !== 'POST' ? undefined : changeIn(world, commented, Number(at));
  return change ? write(world, change, JSON.parse(request.body)) : null;
}

function pullRequest(world: FakeWorld, change: FakeChangeRequest) {
  const sides = sidesOf(world, change.repository, change.number);
  const { state, head, tasks, approvedBy, changesRequestedBy } = followedOf(change);
  return {
    type: 'pullrequest',
    id: change.number,
    title: change.title,
    task_count: tasks.filter(({ resolved }) => !resolved).length,
    state: STATES[state],
    links: { html: { href: pageOf(change) } },
    source: {
      commit: { hash: head.slice(0, 12) },
      branch: { name: sides?.branch },
      // The repository is null once the fork is deleted.
      repository: sides?.source && { full_name: sides.source.name },
    },
    destination: { commit: { hash: 'da39a3ee5e6b' }, branch: { name: sides?.target } },
    participants: [
      ...approvedBy.map((nickname) => ({ user: { nickname }, approved: true, state: 'approved' })),
      ...changesRequestedBy.map((nickname) => ({
        user: { nickname },
        approved: false,
        state: 'changes_requested',
      })),
    ],
  };
}

function task({ id, root, author, body, createdAt, resolved }: FakeTask) {
  return {
    id,
    state: resolved ? 'RESOLVED' : 'UNRESOLVED',
    pending: false,
    creator: { type: 'user', uuid: `{${author}}`, nickname: author },
    content: { raw: body, markup: 'markdown' },
    created_on: createdAt,
    ...(root !== null && { comment: { id: root } }),
    links: { html: { href: `https://bitbucket.org/tasks/${id}` } },
  };
}

export function statusesOf(change: FakeChangeRequest): unknown[] {
  return checksOf(change).map(({ id, name, state, isStatus }) => ({
    type: 'build',
    uuid: `{${id}}`,
    key: name,
    name,
    state: STATUS_STATES[state],
    url: isStatus
      ? `https://ci.example/builds/${id}`
      : `https://bitbucket.org/${change.fork ?? change.repository}/pipelines/results/${id}`,
    updated_on: '2026-11-21T12:00:00+00:00',
  }));
}

export function commentsOf(world: FakeWorld, change: FakeChangeRequest, { query }: FakeRequest): unknown[] {
  const oldestFirst = followedOf(change).comments.toSorted(
    (a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt),
  );
  const sorted = query.get('sort') === '-created_on' ? oldestFirst.toReversed() : oldestFirst;
  return sorted.map((comment) => toComment(world, change, comment));
}

function toComment(world: FakeWorld, change: FakeChangeRequest, comment: FakeComment) {
  const { id, root, author, isBot, path, line, body, createdAt } = comment;
  const { resolved } = rootOf(change, comment);
  return {
    type: 'pullrequest_comment',
    id,
    deleted: false,
    pending: false,
    ...(root !== id && { parent: { id: root } }),
    ...(root === id && resolved && { resolution: { type: 'comment_resolution' } }),
    ...(path !== null && { inline: { path, to: line, from: null } }),
    user: {
      type: isBot ? 'app_user' : 'user',
      uuid: author === world.user.login ? `{${world.user.id}}` : `{${author}}`,
      nickname: author,
    },
    content: { raw: body, markup: 'markdown' },
    created_on: createdAt,
    links: { html: { href: `${pageOf(change)}#comment-${id}` } },
  };
}

function pipeline({ state, log }: FakeCheck, step: string | undefined): FakeResponse {
  if (step !== undefined) {
    return { headers: { 'content-type': 'application/octet-stream' }, body: log };
  }
  const result = { name: state === 'failed' ? 'FAILED' : 'SUCCESSFUL' };
  return {
    body: {
      values: [
        { uuid: '{build}', state: { name: 'COMPLETED', result: { name: 'SUCCESSFUL' } } },
        { uuid: '{test}', state: { name: 'COMPLETED', result } },
      ],
    },
  };
}

function write(world: FakeWorld, change: FakeChangeRequest, body: unknown): FakeResponse {
  const text = jsonText(body, 'content', 'raw') ?? '';
  const parent = jsonAt(body, 'parent', 'id');
  const to = followedOf(change).comments.find(({ id }) => id === parent);
  if (parent !== undefined && !to) {
    return failure(400, 'parent: no such comment');
  }
  const { login } = world.user;
  const written = to ? addReply(change, to, login, text) : addComment(change, login, text);
  return { status: 201, body: toComment(world, change, written) };
}

export function failure(status: number, message: string): FakeResponse {
  return { status, body: { type: 'error', error: { message } } };
}
