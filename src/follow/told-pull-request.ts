import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import type { ToldPullRequest } from '../v1/app-conversations/followed/followed-pull-request.repository.js';

const REPOSITORIES = [
  ['repository', 'full_name'],
  ['project', 'path_with_namespace'],
];
const DATA_CENTER_REPOSITORIES = [['repository'], ['pullRequest', 'toRef', 'repository']];
const NUMBERS = [
  ['pull_request', 'number'],
  ['issue', 'number'],
  ['merge_request', 'iid'],
  ['object_attributes', 'iid'],
  ['pullrequest', 'id'],
  ['pullRequest', 'id'],
];
/** What GitHub says of them lists pull requests, unless they are from a fork. */
const RUNS = ['check_run', 'check_suite', 'workflow_run', 'workflow_job'];
const COMMITS = [
  ['sha'],
  ['before'],
  ['checkout_sha'],
  ['pull_request', 'head', 'sha'],
  ['object_attributes', 'sha'],
  ['merge_request', 'last_commit', 'id'],
  ['commit_status', 'commit', 'hash'],
  ['commit', 'sha'],
  ...RUNS.map((run) => [run, 'head_sha']),
];
const MOST = 100;

/** Which pull request an event of a host is about; null for an event without a repository. */
export function toldPullRequest(payload: unknown): ToldPullRequest | null {
  const repository = texts(payload, REPOSITORIES)[0] ?? dataCenterRepository(payload);
  if (repository === undefined) {
    return null;
  }
  const listed = RUNS.flatMap((run) =>
    jsonList(payload, run, 'pull_requests').map((pull) => jsonAt(pull, 'number')),
  );
  const numbers = [...NUMBERS.map((path) => jsonAt(payload, ...path)), ...listed].filter(isNumber);
  const shas = [...texts(payload, COMMITS), ...linkedCommit(payload)];
  return { repository, numbers: numbers.slice(0, MOST), shas };
}

function texts(payload: unknown, paths: readonly string[][]): string[] {
  return paths.map((path) => jsonText(payload, ...path)).filter((text) => text !== null);
}

function dataCenterRepository(payload: unknown): string | undefined {
  return DATA_CENTER_REPOSITORIES.map((path) => [
    jsonText(payload, ...path, 'project', 'key'),
    jsonText(payload, ...path, 'slug'),
  ])
    .filter(([project, slug]) => project && slug)
    .map((names) => names.join('/'))[0];
}

/** Bitbucket names the commit of a build by its address alone. */
function linkedCommit(payload: unknown): string[] {
  const [, sha] =
    /\/commit\/([0-9a-f]{7,64})$/.exec(jsonText(payload, 'commit_status', 'links', 'commit', 'href') ?? '') ??
    [];
  return sha === undefined ? [] : [sha];
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 2 ** 31;
}
