import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { isSigned } from '@slipway/common/webhook-signature.js';
import { type EventShape, type HostWebhooks, nameAsItLooks } from '../host-webhooks.js';
import type { HostActor } from '../git-provider.js';

/** What is said of them lists pull requests, unless they are from a fork. */
const RUNS = ['check_run', 'check_suite', 'workflow_run', 'workflow_job'];
const COMMITS = [
  ['sha'],
  ['before'],
  ['pull_request', 'head', 'sha'],
  ...RUNS.map((run) => [run, 'head_sha']),
];

const SHAPES: readonly EventShape[] = [
  [/^pull_request_review_comment$/, 'comment', 'pull_request'],
  [/^pull_request_review_thread$/, 'thread', 'pull_request'],
  [/^pull_request_review$/, 'review', 'pull_request'],
  [/^pull_request$/, 'pull_request'],
  [/^issue_comment$/, 'comment', 'issue'],
  [/^issues$/, 'issue'],
  [/^discussion_comment$/, 'comment', 'discussion'],
  [/^discussion$/, 'discussion'],
  [/^deployment_status$/, 'deployment_status'],
  [/^workflow_job$/, 'workflow_job'],
  [/^deployment(?:_protection_rule)?$/, 'deployment'],
  [/^(?:workflow_run|deployment_review)$/, 'workflow_run'],
  [/^check_run$/, 'check_run'],
  [/^check_suite$/, 'check_suite'],
  [/^commit_comment$/, 'comment'],
  [/^release$/, 'release'],
  [/^push$/, 'before', 'after'],
  [/^status$/, 'context', 'sha'],
  [/^(?:create|delete)$/, 'ref_type'],
  [/^workflow_dispatch$/, 'workflow', 'inputs'],
  [/^repository_dispatch$/, 'client_payload'],
];

/** See https://docs.github.com/webhooks/webhook-events-and-payloads. */
export const GITHUB_WEBHOOKS: HostWebhooks = {
  source: 'github',
  eventTypes: [
    'push',
    'issues.*',
    'issue_comment.*',
    'pull_request.*',
    'pull_request_review.*',
    'check_run.*',
  ],
  idHeaders: ['x-github-delivery'],
  isSigned: (sent) => isSigned('hmac_sha256_hex', sent, 'x-hub-signature-256'),
  keyOf: ({ header }, payload) => {
    const name = nameAsItLooks(SHAPES, header('x-github-event'), payload);
    return name && [name, jsonText(payload, 'action')].filter(Boolean).join('.');
  },
  actorOf,
  told: (payload) => ({
    repository: jsonText(payload, 'repository', 'full_name'),
    numbers: [
      jsonAt(payload, 'pull_request', 'number'),
      jsonAt(payload, 'issue', 'number'),
      ...RUNS.flatMap((run) => jsonList(payload, run, 'pull_requests'))
        // Those into a fork, and those of a fork into what it was made of, are listed, too, by numbers of their own.
        .filter((pull) => jsonAt(pull, 'base', 'repo', 'id') === jsonAt(payload, 'repository', 'id'))
        .map((pull) => jsonAt(pull, 'number')),
    ],
    shas: COMMITS.map((path) => jsonText(payload, ...path)),
  }),
};

/** What its author's association to the repository is said of. */
const AUTHORED = ['comment', 'review', 'issue', 'pull_request', 'discussion'];

function actorOf(payload: unknown): HostActor | null {
  const [name, id] = [jsonText(payload, 'sender', 'login'), jsonNumber(payload, 'sender', 'id')];
  const isOwner = AUTHORED.some(
    (part) =>
      id !== null &&
      jsonAt(payload, part, 'user', 'id') === id &&
      jsonText(payload, part, 'author_association') === 'OWNER',
  );
  return name === null ? null : { name, id: id === null ? null : String(id), isOwner };
}
