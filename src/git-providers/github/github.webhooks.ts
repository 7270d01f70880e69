import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { isSigned } from '../../common/crypto/webhook-signature.js';
import type { HostWebhooks } from '../git-provider.js';

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
