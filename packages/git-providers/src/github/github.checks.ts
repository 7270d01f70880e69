import { z } from 'zod';
import { MAX_FOLLOWED_CHECKS, pageUrl } from '../change-requests.js';
import type { FollowedCheck } from '../git-provider.js';
import { list, number, object, requiredId, requiredName, text } from '../response-schema.js';

/** The others are told of together. */
const LISTED = MAX_FOLLOWED_CHECKS - 10;
const PASSED: readonly (string | null)[] = ['SUCCESS', 'NEUTRAL', 'SKIPPED'];

const contextSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('CheckRun'),
    fullDatabaseId: requiredId,
    name: requiredName,
    status: text,
    conclusion: text,
    detailsUrl: pageUrl,
    checkSuite: object({ workflowRun: object({ event: text, workflow: object({ name: text }) }) }),
  }),
  z.object({
    kind: z.literal('StatusContext'),
    id: requiredName,
    context: requiredName,
    state: text,
    targetUrl: pageUrl,
  }),
]);
type GithubContext = z.output<typeof contextSchema>;

/** What an app reports checks in; here those of Actions, one for each run of a workflow. */
const workflowSchema = z.object({
  databaseId: z.number(),
  status: text,
  conclusion: text,
  workflowRun: z.object({ url: pageUrl, event: text, workflow: object({ name: text }) }),
});
type GithubWorkflow = z.output<typeof workflowSchema>;

/** Members of a pull request that tell its checks. */
export const checkMembers = {
  statusCheckRollup: object({
    state: text,
    contexts: object({ totalCount: number, nodes: list(contextSchema) }),
  }),
  commits: object({
    nodes: list(object({ commit: object({ checkSuites: object({ nodes: list(workflowSchema) }) }) })),
  }),
};
type GithubChecks = z.output<z.ZodObject<typeof checkMembers>> & { headRefOid: string; url: string };

/** What asks for them. */
export const CHECKS = `statusCheckRollup { state contexts(first: ${LISTED}) { totalCount nodes {
    kind: __typename
    ... on CheckRun {
      fullDatabaseId: databaseId name status conclusion detailsUrl
      checkSuite { workflowRun { event workflow { name } } }
    }
    ... on StatusContext { id context state targetUrl }
  } } }
  commits(last: 1) { nodes { commit { checkSuites(last: 50) { nodes {
    databaseId status conclusion workflowRun { url event workflow { name } }
  } } } } }`;

export function toChecks(pull: GithubChecks): FollowedCheck[] {
  const { statusCheckRollup, commits } = pull;
  const workflows = toWorkflows(commits.nodes.flatMap(({ commit }) => commit.checkSuites.nodes));
  const isRunning = workflows.some(({ state }) => state === 'pending');
  const runs = toRuns(statusCheckRollup.contexts.nodes, isRunning);
  return [...runs, ...toRollup(pull, runs), ...workflows];
}

export function hidesChecks({ statusCheckRollup: { state, contexts } }: GithubChecks): boolean {
  return state === null && isCut(contexts);
}

export function isCut({ totalCount, nodes }: { totalCount: number | null; nodes: unknown[] }): boolean {
  return (totalCount ?? 0) > nodes.length;
}

/**
 * All together, where not all can be read: a large matrix has more than are listed, and fine-grained tokens have no
 * permission for runs (https://github.com/cli/cli/issues/12597).
 */
function toRollup(
  { statusCheckRollup: { state, contexts }, headRefOid, url }: GithubChecks,
  runs: readonly FollowedCheck[],
): FollowedCheck[] {
  const isTold = runs.some((run) => run.state === 'failed');
  const check = { id: `rollup-${headRefOid}`, name: 'all checks together', url: `${url}/checks` };
  return state !== null && isCut(contexts) && !isTold ? [{ ...check, state: statusState(state) }] : [];
}

/** Those that say more than the checks of their jobs: a job is none before it begins, or where the file is wrong. */
function toWorkflows(runs: readonly GithubWorkflow[]): FollowedCheck[] {
  const newest = new Map<string, GithubWorkflow>();
  for (const run of runs.toSorted((a, b) => a.databaseId - b.databaseId)) {
    newest.set(`${run.workflowRun.workflow.name} ${run.workflowRun.event}`, run);
  }
  return [...newest.values()].flatMap(({ databaseId, status, conclusion, workflowRun }) => {
    const check = { id: `workflow-${databaseId}`, url: workflowRun.url };
    const title = workflowRun.workflow.name ?? 'workflow';
    if (status === 'COMPLETED' && conclusion === 'STARTUP_FAILURE') {
      return { ...check, name: `${title} (could not start)`, state: 'failed' as const };
    }
    // The other one waits until a person allows it to run.
    return status !== 'COMPLETED' || conclusion === 'ACTION_REQUIRED'
      ? { ...check, name: title, state: 'pending' as const }
      : [];
  });
}

/** A workflow that ran again is listed twice; the newest run has the highest id. */
function toRuns(contexts: readonly GithubContext[], isRunning: boolean): FollowedCheck[] {
  const newest = new Map<string, FollowedCheck>();
  for (const context of contexts) {
    if (contexts.some((other) => supersedes(other, context))) {
      continue;
    }
    if (context.kind === 'StatusContext') {
      const { id, context: title, state, targetUrl: url } = context;
      newest.set(`status ${title}`, { id, name: title, state: statusState(state), url });
      continue;
    }
    const { fullDatabaseId: id, name: title, checkSuite, detailsUrl: url } = context;
    const key = `run ${checkSuite.workflowRun.workflow.name} ${checkSuite.workflowRun.event} ${title}`;
    if (Number(id) >= Number(newest.get(key)?.id ?? 0)) {
      newest.set(key, { id, name: title, state: runState(context, isRunning), url });
    }
  }
  return [...newest.values()];
}

/** Runs of a workflow for several events, such as a push and its pull request, cancel each other where they are of one concurrency group. */
function supersedes(other: GithubContext, run: GithubContext): boolean {
  return (
    run.kind === 'CheckRun' &&
    other.kind === 'CheckRun' &&
    run.conclusion === 'CANCELLED' &&
    other.name === run.name &&
    other.checkSuite.workflowRun.workflow.name === run.checkSuite.workflowRun.workflow.name &&
    Number(other.fullDatabaseId) > Number(run.fullDatabaseId)
  );
}

function statusState(state: string | null): FollowedCheck['state'] {
  return state === 'SUCCESS' ? 'passed' : state === 'FAILURE' || state === 'ERROR' ? 'failed' : 'pending';
}

function runState(
  { status, conclusion }: { status: string | null; conclusion: string | null },
  isRunning: boolean,
): FollowedCheck['state'] {
  // A workflow that begins may cancel the one before; its own jobs follow.
  if (status !== 'COMPLETED' || (conclusion === 'CANCELLED' && isRunning)) {
    return 'pending';
  }
  return PASSED.includes(conclusion) ? 'passed' : 'failed';
}
