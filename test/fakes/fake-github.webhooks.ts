import { createHmac, randomUUID } from 'node:crypto';
import { pageOf } from './fake-change-requests.js';
import { followedOf } from './fake-followed.js';
import type { FakeChangeRequest, FakeCheck, FakeComment, FakeIssue, FakeWorld } from './fake-world.js';

/** What GitHub calls when something happens, as its settings name it. */
export interface GithubWebhook {
  url: string;
  secret: string;
}

export interface GithubDelivery {
  /** Value of `X-GitHub-Event`. */
  event: string;
  payload: Record<string, unknown>;
}

/** Sends a delivery, signed as GitHub signs it. The same `id` again is a redelivery. */
export async function deliver(
  { url, secret }: GithubWebhook,
  { event, payload }: GithubDelivery,
  id: string = randomUUID(),
): Promise<Response> {
  const body = JSON.stringify(payload);
  return await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'GitHub-Hookshot/fake',
      'x-github-event': event,
      'x-github-delivery': id,
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    },
    body,
  });
}

/** `check_run`, as it is created, runs and completes. */
export function checkRunDelivery(change: FakeChangeRequest, check: FakeCheck): GithubDelivery {
  const isDone = check.state !== 'pending';
  return {
    event: 'check_run',
    payload: {
      action: isDone ? 'completed' : 'created',
      check_run: {
        id: check.id,
        name: check.name,
        head_sha: check.head,
        status: isDone ? 'completed' : 'in_progress',
        conclusion: isDone ? (check.state === 'passed' ? 'success' : 'failure') : null,
        pull_requests: [{ number: change.number, head: { sha: check.head } }],
      },
      ...common(change.repository, 'github-actions[bot]'),
    },
  };
}

/** `pull_request_review_comment` or `issue_comment`, by what the comment is. */
export function commentDelivery(change: FakeChangeRequest, comment: FakeComment): GithubDelivery {
  const { id, body, author, kind, root, path, line, mayWrite } = comment;
  const said = {
    id,
    body,
    user: { login: author, type: 'User' },
    author_association: mayWrite ? 'COLLABORATOR' : 'NONE',
    html_url: `${pageOf(change)}#${id}`,
  };
  const { number, title } = change;
  return kind === 'thread'
    ? {
        event: 'pull_request_review_comment',
        payload: {
          action: 'created',
          comment: { ...said, path, line, ...(root !== id && { in_reply_to_id: root }) },
          pull_request: pull(change),
          ...common(change.repository, author),
        },
      }
    : {
        event: 'issue_comment',
        payload: {
          action: 'created',
          comment: said,
          issue: { number, title, pull_request: { html_url: pageOf(change) } },
          ...common(change.repository, author),
        },
      };
}

/** `issues`, as a user puts a label on one. */
export function issueLabeledDelivery(
  world: FakeWorld,
  { repository, number, title }: FakeIssue,
  label: string,
): GithubDelivery {
  const { login } = world.user;
  return {
    event: 'issues',
    payload: {
      action: 'labeled',
      label: { name: label },
      issue: { number, title, body: '', labels: [{ name: label }], user: { login } },
      ...common(repository, login),
    },
  };
}

function pull(change: FakeChangeRequest) {
  const { state, head } = followedOf(change);
  return {
    number: change.number,
    title: change.title,
    html_url: pageOf(change),
    state: state === 'open' ? 'open' : 'closed',
    merged: state === 'merged',
    draft: change.draft ?? false,
    head: { sha: head, ref: change.sourceBranch ?? 'topic' },
    base: { ref: change.targetBranch ?? 'main' },
  };
}

function common(repository: string, sender: string) {
  return {
    repository: { full_name: repository, html_url: `https://code.example/${repository}` },
    sender: { login: sender, type: 'User' },
  };
}
