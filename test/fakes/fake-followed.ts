import { createHash } from 'node:crypto';
import { repositoryIn } from './fake-change-requests.js';
import type {
  FakeChangeRequest,
  FakeCheck,
  FakeComment,
  FakeFollowed,
  FakeWorkflow,
  FakeWorld,
} from './fake-world.js';

/** Another one for each text. */
export function commitNamed(text: string): string {
  return createHash('sha1').update(text).digest('hex');
}

/** What those who follow a change request see of it; a test may change it in place. */
export function followedOf(change: FakeChangeRequest): FakeFollowed {
  change.followed ??= {
    state: 'open',
    head: commitNamed(`${change.repository} ${change.number}`),
    checks: [],
    workflows: [],
    comments: [],
    tasks: [],
    approvedBy: [],
    changesRequestedBy: [],
  };
  return change.followed;
}

export function isOpen({ followed }: FakeChangeRequest): boolean {
  return (followed?.state ?? 'open') === 'open';
}

/** The change request of that number, if its repository is there. */
export function changeIn(
  world: FakeWorld,
  repository: string,
  number: number,
): FakeChangeRequest | undefined {
  const found = repositoryIn(world, repository);
  return world.changeRequests.find((change) => change.repository === found?.name && change.number === number);
}

/** A check of the current commit; its `state` and `log` may be changed later. */
export function addCheck(
  change: FakeChangeRequest,
  name: string,
  { state = 'pending', isStatus = false, log = '' }: Partial<FakeCheck> = {},
): FakeCheck {
  const followed = followedOf(change);
  const check = { id: nextId(change), name, head: followed.head, state, isStatus, log };
  followed.checks.push(check);
  return check;
}

/** A workflow that runs for the current commit, until it has a `conclusion`. */
export function addWorkflow(
  change: FakeChangeRequest,
  name: string,
  conclusion: FakeWorkflow['conclusion'] = null,
): FakeWorkflow {
  const followed = followedOf(change);
  const workflow = { id: nextId(change), name, head: followed.head, conclusion };
  followed.workflows.push(workflow);
  return workflow;
}

/** The checks of the current commit. */
export function checksOf(change: FakeChangeRequest): FakeCheck[] {
  const { checks, head } = followedOf(change);
  return checks.filter((check) => check.head === head);
}

/** A comment without a place, or with `path` a new thread; `kind: 'review'` for the text of a review. */
export function addComment(
  change: FakeChangeRequest,
  author: string,
  body: string,
  options: Partial<FakeComment> = {},
): FakeComment {
  const id = nextId(change);
  const { path = null, kind = path === null ? 'comment' : 'thread' } = options;
  const comment = {
    id,
    kind,
    root: options.root ?? id,
    author,
    mayWrite: options.mayWrite ?? true,
    isBot: options.isBot ?? false,
    body,
    path,
    line: options.line ?? (path === null ? null : 1),
    createdAt: options.createdAt ?? new Date().toISOString(),
    resolved: options.resolved ?? false,
  };
  followedOf(change).comments.push(comment);
  return comment;
}

/** An answer in the thread of a comment. */
export function addReply(
  change: FakeChangeRequest,
  to: FakeComment,
  author: string,
  body: string,
): FakeComment {
  const { kind, root, path, line } = to;
  return addComment(change, author, body, { kind, root, path, line });
}

/** The first comment of the thread. */
export function rootOf(change: FakeChangeRequest, comment: FakeComment): FakeComment {
  return followedOf(change).comments.find(({ id }) => id === comment.root) ?? comment;
}

/** Login of an account that may review, as anyone may in public repositories, but not write. */
export const STRANGER = 'stranger';

export function approve(change: FakeChangeRequest, login: string): void {
  const followed = followedOf(change);
  followed.approvedBy = [...new Set([...followed.approvedBy, login])];
  followed.changesRequestedBy = followed.changesRequestedBy.filter((other) => other !== login);
}

export function requestChanges(change: FakeChangeRequest, login: string): void {
  const followed = followedOf(change);
  followed.changesRequestedBy = [...new Set([...followed.changesRequestedBy, login])];
  followed.approvedBy = followed.approvedBy.filter((other) => other !== login);
}

/** A push, or a force-push: the checks of the former commit are those of the change no longer. */
export function push(change: FakeChangeRequest, head: string): void {
  followedOf(change).head = head;
}

export function endWith(change: FakeChangeRequest, state: 'merged' | 'closed'): void {
  followedOf(change).state = state;
}

/** Deletes a repository with all that is in it. */
export function deleteRepository(world: FakeWorld, name: string): void {
  world.repositories = world.repositories.filter((repository) => repository.name !== name);
  world.changeRequests = world.changeRequests.filter(({ repository }) => repository !== name);
  world.issues = world.issues.filter(({ repository }) => repository !== name);
}

function nextId(change: FakeChangeRequest): number {
  const { checks, workflows, comments } = followedOf(change);
  return 1_000 * change.number + checks.length + workflows.length + comments.length + 1;
}
