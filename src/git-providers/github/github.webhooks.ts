import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { isSigned } from '../../common/crypto/webhook-signature.js';
import type { HostActor, HostWebhooks } from '../git-provider.js';

/** What is said of them lists pull requests, unless they are from a fork. */
const RUNS = ['check_run', 'check_suite', 'workflow_run', 'workflow_job'];
const COMMITS = [
  ['sha'],
  ['before'],
  ['pull_request', 'head', 'sha'],
  ...RUNS.map((run) => [run, 'head_sha']),
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
  keyOf: ({ header }, payload) =>
    [header('x-github-event'), jsonText(payload, 'action')].filter(Boolean).join('.'),
  actorOf,
  told: (payload) => ({
    repository: jsonText(payload, 'repository', 'full_name'),
    numbers: [
      jsonAt(payload, 'pull_request', 'number'),
      jsonAt(payload, 'issue', 'number'),
      ...RUNS.flatMap((run) => jsonList(payload, run, 'pull_requests')).map((pull) => jsonAt(pull, 'number')),
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
