import { mentions } from '@slipway/common/untrusted-text/mentions.js';
import type {
  FollowedChangeRequest,
  FollowedCheck,
  FollowedComment,
} from '@slipway/git-providers/git-provider.js';
import {
  type FollowedPullRequest,
  type KnownOfPullRequest,
  NOTHING_KNOWN,
} from '../v1/app-conversations/followed/followed-pull-request.entity.js';
import { briefCause } from '../v1/sandboxes/lifecycle/exit-diagnosis.js';
import { type Findings, isReply } from './round-talk.js';

export type FollowEnd = { state: 'reached' | 'gave_up' | 'stopped'; reason: string };

export type FollowDecision = { known: KnownOfPullRequest } & (
  | { kind: 'wait'; lookAt?: Date }
  | { kind: 'restart' }
  | { kind: 'round'; findings: Findings }
  | ({ kind: 'end' } & FollowEnd)
);

export interface FollowingConversation {
  /** All of its budget is spent. */
  isSpent: boolean;
  /** It can never work again. */
  isGone: boolean;
  /** The failure of its sandbox, which does not run. */
  failure: { at: string; cause: string | null } | null;
}

export type FollowedSoFar = Pick<
  FollowedPullRequest,
  'wishes' | 'round' | 'known' | 'idleSince' | 'createdAt'
>;

/** A host's clock may be that far ahead: the agent's last comments must not wake it time and again. */
const CLOCK_SKEW_MS = 5_000;
const MAX_COMMENTS_OF_A_ROUND = 30;
const MAX_ASIDE = 10;
const MAX_KNOWN = 500;
/** A host may need that long to show a push. */
const PUSH_LAG_MS = 60_000;
/** A push is shown before all that checks it: what passes at once comes first. */
const SETTLE_MS = 30_000;

/** What to do about a pull request as its host shows it; null: the host does not show it. */
export function decide(
  followed: FollowedSoFar,
  shown: FollowedChangeRequest | null,
  conversation: FollowingConversation,
  now: number,
): FollowDecision {
  const before: KnownOfPullRequest = { ...NOTHING_KNOWN, ...followed.known };
  if (shown === null) {
    const known = { ...before, missing: true };
    // A host may need a moment to show what was opened just now.
    return before.missing ? end(known, 'gave_up', 'The pull request is gone.') : { kind: 'wait', known };
  }
  const known = withOwnWork(followed, before, shown);
  const { wishes, round, idleSince } = followed;
  const over = endOf(shown) ?? (isToldToStop(followed, shown) ? STOPPED : null);
  if (over !== null) {
    return end(known, over.state, over.reason);
  }
  if (idleSince === null) {
    if (conversation.isGone) {
      return end(known, 'gave_up', GONE);
    }
    return conversation.failure === null
      ? { kind: 'wait', known }
      : afterFailure(known, round, conversation.failure);
  }
  if (hasReached(wishes, shown, known)) {
    const settledAt = idleSince.getTime() + SETTLE_MS;
    return now < settledAt
      ? { kind: 'wait', known, lookAt: new Date(settledAt) }
      : end(known, 'reached', `The pull request is ${wishes.until}.`);
  }
  if (conversation.isSpent) {
    return end(known, 'gave_up', 'The budget of the conversation is spent.');
  }
  const findings = findingsOf(wishes, shown, known);
  const isNew = findings.checks.length > 0 || findings.comments.length > 0 || findings.conflict;
  const isStale = now - idleSince.getTime() > PUSH_LAG_MS && isStuck(wishes, shown);
  if (round >= wishes.max_rounds && (isNew || isStale)) {
    return end(known, 'gave_up', `All ${wishes.max_rounds} rounds (max_rounds) are used up.`);
  }
  if (!isNew) {
    return { kind: 'wait', known };
  }
  if (conversation.isGone) {
    return end(known, 'gave_up', GONE);
  }
  const isDoubted =
    findings.checks.length === 0 &&
    !findings.conflict &&
    findings.comments.every((each) => isDoubtful(idleSince, each));
  const begun = round + 1;
  const next: KnownOfPullRequest = {
    ...withFindings(known, shown, findings),
    doubted: isDoubted ? begun : null,
    restart: conversation.failure && { round: begun, failedAt: conversation.failure.at },
  };
  return { kind: 'round', known: next, findings };
}

/** Once in a round: what kills its sandbox each time would be begun without end. */
function afterFailure(
  known: KnownOfPullRequest,
  round: number,
  { at, cause }: NonNullable<FollowingConversation['failure']>,
): FollowDecision {
  const { restart } = known;
  return restart?.round === round && restart.failedAt !== at
    ? end(
        known,
        'gave_up',
        `The sandbox was started again for this round, and failed again: ${briefCause(cause)}`,
      )
    : { kind: 'restart', known: { ...known, restart: { round, failedAt: at } } };
}

const GONE = 'The sandbox of the conversation is gone.';
const STOPPED: FollowEnd = { state: 'stopped', reason: 'A comment told it to stop.' };

function end(known: KnownOfPullRequest, state: FollowEnd['state'], reason: string): FollowDecision {
  return { kind: 'end', known, state, reason };
}

function endOf({ state }: FollowedChangeRequest): FollowEnd | null {
  switch (state) {
    case 'merged':
      return { state: 'reached', reason: 'The pull request is merged.' };
    case 'closed':
      return { state: 'gave_up', reason: 'The pull request was closed without being merged.' };
    case 'open':
      return null;
  }
}

/** Whether or not the agent works. */
function isToldToStop({ createdAt }: FollowedSoFar, { comments }: FollowedChangeRequest): boolean {
  return comments.some(
    (comment) =>
      mentions(comment.body, 'slipway', 'stop') &&
      (comment.own || comment.mayWrite === true) &&
      comment.createdAt >= createdAt.getTime() - CLOCK_SKEW_MS,
  );
}

/** Written just after the agent has ended, by the clocks of two machines: by its person, or by itself. */
function isDoubtful(idleSince: Date, { own, createdAt }: FollowedComment): boolean {
  const after = createdAt - idleSince.getTime();
  return own && after > 0 && after <= CLOCK_SKEW_MS;
}

/**
 * Comments of the account that were written while the agent worked are its own; those of apps are told in the next round.
 * What is doubtful begins a round, but never two in a row.
 */
function withOwnWork(
  { idleSince, round }: FollowedSoFar,
  before: KnownOfPullRequest,
  { comments, conflicts }: FollowedChangeRequest,
): KnownOfPullRequest {
  const skewMs = round > 0 && before.doubted === round ? CLOCK_SKEW_MS : 0;
  const workedUntil = idleSince === null ? Infinity : idleSince.getTime() + skewMs;
  const unknown = comments.filter(({ id }) => !before.comments.includes(id));
  const replies = unknown.filter(isReply).map(({ id }) => id);
  const aside = unknown
    .filter((comment) => (comment.own && comment.createdAt <= workedUntil) || isNotice(comment))
    .filter((comment) => !isReply(comment))
    .map(({ id }) => id);
  const shown = new Set(comments.map(({ id }) => id));
  // However much strangers write, what is still shown does not become new.
  const kept = before.comments.toSorted((one, other) => Number(shown.has(one)) - Number(shown.has(other)));
  return {
    ...before,
    missing: false,
    conflictOf: conflicts === 'no' ? null : before.conflictOf,
    comments: newest([...kept, ...replies, ...aside]),
    aside: newest([...before.aside, ...aside]),
  };
}

function findingsOf(
  wishes: FollowedSoFar['wishes'],
  { checks, comments, conflicts, headSha }: FollowedChangeRequest,
  known: KnownOfPullRequest,
): Findings {
  return {
    checks: wishes.checks
      ? checks.filter(({ id, state }) => state === 'failed' && !known.checks.includes(id))
      : [],
    comments: wishes.reviews
      ? comments
          .filter(({ id, resolved }) => resolved !== true && !known.comments.includes(id))
          .slice(0, MAX_COMMENTS_OF_A_ROUND)
      : [],
    conflict: wishes.conflicts && conflicts === 'yes' && known.conflictOf !== headSha,
    aside: comments.filter(({ id }) => known.aside.includes(id)).slice(-MAX_ASIDE),
  };
}

function withFindings(
  known: KnownOfPullRequest,
  { headSha }: FollowedChangeRequest,
  { checks, comments, conflict }: Findings,
): KnownOfPullRequest {
  return {
    ...known,
    checks: newest([...known.checks, ...checks.map(({ id }) => id)]),
    comments: newest([...known.comments, ...comments.map(({ id }) => id)]),
    aside: [],
    conflictOf: conflict ? headSha : known.conflictOf,
  };
}

function hasReached(
  { reviews, conflicts: followsConflicts, until }: FollowedSoFar['wishes'],
  { checks, comments, conflicts, approved, truncated }: FollowedChangeRequest,
  known: KnownOfPullRequest,
): boolean {
  const isOpenComment = (comment: FollowedComment): boolean => {
    const isKnown = known.comments.includes(comment.id);
    // Apps resolve no threads of theirs.
    const isOver = isReply(comment) || isByStranger(comment) || (comment.isBot && isKnown);
    return comment.resolved === false ? !isOver : comment.resolved === null && !isKnown;
  };
  const isClear =
    !truncated &&
    checks.every(({ state }) => state === 'passed') &&
    !(followsConflicts && conflicts !== 'no') &&
    !(reviews && comments.some(isOpenComment));
  switch (until) {
    case 'green':
      return isClear && checks.length > 0;
    case 'approved':
      return isClear && approved;
    case 'merged':
      return false;
  }
}

/** A report of coverage, or the address of a preview: apps ask in threads. */
function isNotice(comment: FollowedComment): boolean {
  return isByStranger(comment) || (comment.isBot && comment.resolved === null);
}

/** Anyone may comment in public repositories, which must neither start work nor delay its end. */
function isByStranger({ own, isBot, mayWrite }: FollowedComment): boolean {
  return mayWrite === false && !own && !isBot;
}

/** What only another round could repair. */
function isStuck(wishes: FollowedSoFar['wishes'], { checks, conflicts }: FollowedChangeRequest): boolean {
  const hasState = (wanted: FollowedCheck['state']): boolean => checks.some(({ state }) => state === wanted);
  return (
    !hasState('pending') &&
    ((wishes.checks && hasState('failed')) || (wishes.conflicts && conflicts === 'yes'))
  );
}

function newest(ids: readonly string[]): string[] {
  return ids.slice(-MAX_KNOWN);
}
