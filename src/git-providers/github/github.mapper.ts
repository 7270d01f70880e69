import { jsonAt, jsonList, jsonNumber, jsonText } from '../../common/json-access.js';
import { hasAgentInstructions } from '../agent-instructions.js';
import { toOpenedChangeRequest } from '../change-requests.js';
import type {
  AssignedIssue,
  ChangeRequest,
  OpenedChangeRequest,
  ProbedRepository,
  ProviderUser,
  RepositoryActivity,
  Signal,
} from '../git-provider.js';

/** What the pull-requests document tells. */
interface GithubPullRequests {
  changeRequests: ChangeRequest[];
  truncated: boolean;
}

/** What the repositories-and-issues document tells. */
interface GithubRepositoriesAndIssues {
  recentRepositories: RepositoryActivity[];
  probedRepositories: ProbedRepository[];
  issues: AssignedIssue[];
  truncated: boolean;
}

const FAILING_STATES: readonly string[] = ['FAILURE', 'ERROR'];
const WRITING_PERMISSIONS: readonly string[] = ['WRITE', 'MAINTAIN', 'ADMIN'];

/**
 * Translates `data` of the pull-requests document. An element that lacks what it needs is left out alone.
 *
 * @param rechecked `mergeable` by node id where it was read again
 */
export function mapPullRequests(data: unknown, rechecked: ReadonlyMap<string, string>): GithubPullRequests {
  return {
    changeRequests: pullRequestNodes(data).flatMap((node) => mapPullRequest(node, rechecked)),
    truncated: jsonAt(data, 'viewer', 'pullRequests', 'pageInfo', 'hasNextPage') === true,
  };
}

/** Node ids of the pull requests whose mergeability GitHub had not computed yet. */
export function undeterminedIds(data: unknown): string[] {
  return pullRequestNodes(data)
    .filter((node) => mapMergeable(jsonAt(node, 'mergeable')) === 'unknown')
    .flatMap((node) => jsonText(node, 'id') ?? []);
}

/** Translates `data` of the recheck document to `mergeable` by node id. */
export function mapRecheck(data: unknown): Map<string, string> {
  return new Map(
    jsonList(data, 'nodes').flatMap((node): [string, string][] => {
      const id = jsonText(node, 'id');
      const mergeable = jsonText(node, 'mergeable');
      return id === null || mergeable === null ? [] : [[id, mergeable]];
    }),
  );
}

/** Translates `data` of the repositories-and-issues document. An element that lacks what it needs is left out alone. */
export function mapRepositoriesAndIssues(data: unknown): GithubRepositoriesAndIssues {
  return {
    recentRepositories: jsonList(data, 'viewer', 'recent', 'nodes').flatMap(mapRepository),
    probedRepositories: jsonList(data, 'viewer', 'probe', 'nodes').flatMap(mapProbe),
    issues: jsonList(data, 'assigned', 'nodes').flatMap(mapIssue),
    truncated: jsonAt(data, 'assigned', 'pageInfo', 'hasNextPage') === true,
  };
}

/** Translates `GET /user`; null when it is no account. */
export function mapUser(body: unknown): ProviderUser | null {
  const id = jsonNumber(body, 'id');
  const login = jsonText(body, 'login');
  if (id === null || login === null) {
    return null;
  }
  return {
    id: String(id),
    login,
    avatarUrl: jsonText(body, 'avatar_url') ?? '',
    company: jsonText(body, 'company'),
    name: jsonText(body, 'name'),
    email: jsonText(body, 'email'),
  };
}

function pullRequestNodes(data: unknown): unknown[] {
  return jsonList(data, 'viewer', 'pullRequests', 'nodes');
}

function mapPullRequest(node: unknown, rechecked: ReadonlyMap<string, string>): ChangeRequest[] {
  const item = mapItem(node);
  const mergeable = rechecked.get(jsonText(node, 'id') ?? '') ?? jsonAt(node, 'mergeable');
  return item.map((common) => ({
    ...common,
    draft: jsonAt(node, 'isDraft') === true,
    conflicts: mapMergeable(mergeable),
    failingChecks: mapChecks(node),
    unresolvedComments: mapReviews(node),
  }));
}

function mapIssue(node: unknown): AssignedIssue[] {
  return jsonText(node, '__typename') === 'Issue' ? mapItem(node) : [];
}

/** What pull requests and issues have in common. */
function mapItem(node: unknown): AssignedIssue[] {
  const [repository] = mapRepository(jsonAt(node, 'repository'));
  const number = jsonNumber(node, 'number');
  const title = jsonText(node, 'title');
  const updatedAt = timeAt(node, 'updatedAt');
  const isComplete = repository && number !== null && title !== null && updatedAt !== null;
  return isComplete ? [{ repository, number, title, updatedAt }] : [];
}

function mapMergeable(mergeable: unknown): Signal {
  switch (mergeable) {
    case 'CONFLICTING':
      return 'yes';
    case 'MERGEABLE':
      return 'no';
    default:
      return 'unknown';
  }
}

/** The last commit's checks and statuses together; no rollup means that there are none. */
function mapChecks(node: unknown): Signal {
  const commits = jsonAt(node, 'commits', 'nodes');
  if (!Array.isArray(commits)) {
    return 'unknown';
  }
  const state = jsonText(commits.at(-1), 'commit', 'statusCheckRollup', 'state');
  return state !== null && FAILING_STATES.includes(state) ? 'yes' : 'no';
}

/** Only the newest threads are read: older ones that are still open count as resolved. */
function mapReviews(node: unknown): Signal {
  const isOpen = jsonList(node, 'reviewThreads', 'nodes').some(
    (thread) => jsonAt(thread, 'isResolved') === false,
  );
  const isWantedOtherwise = jsonList(node, 'latestOpinionatedReviews', 'nodes').some(
    (review) => jsonAt(review, 'state') === 'CHANGES_REQUESTED',
  );
  if (isOpen || isWantedOtherwise) {
    return 'yes';
  }
  return Array.isArray(jsonAt(node, 'reviewThreads', 'nodes')) ? 'no' : 'unknown';
}

function mapRepository(node: unknown): RepositoryActivity[] {
  const name = jsonText(node, 'nameWithOwner');
  const usable = jsonAt(node, 'isArchived') !== true && jsonAt(node, 'isDisabled') !== true;
  return name === null ? [] : [{ name, activeAt: timeAt(node, 'pushedAt'), usable }];
}

/** A repository whose files were not readable is left out: not knowing is no reason to suggest anything. */
function mapProbe(node: unknown): ProbedRepository[] {
  const [repository] = mapRepository(node);
  const isEmpty = jsonAt(node, 'isEmpty') === true;
  if (!repository || (!isEmpty && !Array.isArray(jsonAt(node, 'root', 'entries')))) {
    return [];
  }
  const isOwnWork = !isEmpty && jsonAt(node, 'isFork') !== true && jsonAt(node, 'isMirror') !== true;
  const mayWrite = WRITING_PERMISSIONS.includes(jsonText(node, 'viewerPermission') ?? '');
  return [
    {
      ...repository,
      writable: repository.usable && isOwnWork && mayWrite,
      hasAgentInstructions: hasAgentInstructions({
        repository: repository.name,
        rootEntries: entryNames(node, 'root'),
        microagents: entryNames(node, 'microagents'),
        skills: entryNames(node, 'skills'),
      }),
    },
  ];
}

function entryNames(node: unknown, folder: string): string[] {
  return jsonList(node, folder, 'entries').flatMap((entry) => jsonText(entry, 'name') ?? []);
}

function timeAt(node: unknown, key: string): number | null {
  const time = Date.parse(jsonText(node, key) ?? '');
  return Number.isNaN(time) ? null : time;
}

/** One pull request of the REST API; null when it lacks its number or page. */
export function toOpenedPullRequest(value: unknown): OpenedChangeRequest | null {
  return toOpenedChangeRequest(jsonNumber(value, 'number'), jsonText(value, 'html_url'));
}

/**
 * Why GitHub refused: the details of a failed validation, which have a text or a field and a code, else the message
 * (https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api).
 */
export function githubReasons(body: unknown): string[] {
  const details = jsonList(body, 'errors').map((error) => {
    const field = jsonText(error, 'field');
    const code = jsonText(error, 'code');
    return typeof error === 'string' && error !== ''
      ? error
      : (jsonText(error, 'message') ?? (field && code ? `${field}: ${code}` : null));
  });
  const texts = details.filter((text) => text !== null);
  const message = jsonText(body, 'message');
  return texts.length > 0 || message === null ? texts : [message];
}
