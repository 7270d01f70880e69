import { describe, expect, it } from '@jest/globals';
import type {
  FollowedChangeRequest,
  FollowedCheck,
  FollowedComment,
} from '@slipway/git-providers/git-provider.js';
import type {
  FollowWishes,
  KnownOfPullRequest,
} from '../v1/app-conversations/followed/followed-pull-request.entity.js';
import { decide, type FollowDecision, type FollowedSoFar } from './follow.decision.js';
import { replyText } from './round-talk.js';

const BEGUN = Date.parse('2026-11-21T09:00:00Z');
const IDLE = BEGUN + 600_000;
const NOW = IDLE + 30_000;
const WISHES: FollowWishes = { checks: true, reviews: true, conflicts: true, max_rounds: 5, until: 'green' };

interface Situation {
  wishes?: Partial<FollowWishes>;
  known?: Partial<KnownOfPullRequest>;
  round?: number;
  works?: boolean;
  spent?: boolean;
  gone?: boolean;
  /** When its sandbox failed. */
  failed?: string;
  idleFor?: number;
}

function check(state: FollowedCheck['state'], id = `run-${state}`): FollowedCheck {
  return { id, name: 'test', state, url: null };
}

function comment(change: Partial<FollowedComment> = {}): FollowedComment {
  return {
    id: 'c1',
    threadId: 't1',
    author: 'alice',
    own: false,
    isBot: false,
    mayWrite: true,
    body: 'Why?',
    path: 'src/a.ts',
    line: 4,
    url: null,
    createdAt: NOW - 1_000,
    resolved: false,
    ...change,
  };
}

function shows(change: Partial<FollowedChangeRequest> = {}): FollowedChangeRequest {
  return {
    state: 'open',
    url: 'https://code.example/octo/app/7',
    headSha: 'a1',
    conflicts: 'no',
    approved: false,
    checks: [],
    comments: [],
    truncated: false,
    ...change,
  };
}

function followed({
  wishes,
  known = {},
  round = 0,
  works = false,
  idleFor = NOW - IDLE,
}: Situation): FollowedSoFar {
  return {
    wishes: { ...WISHES, ...wishes },
    known,
    round,
    idleSince: works ? null : new Date(NOW - idleFor),
    createdAt: new Date(BEGUN),
  };
}

function decided(situation: Situation, shown: FollowedChangeRequest | null): FollowDecision {
  const { failed, spent, gone } = situation;
  const conversation = {
    isSpent: spent === true,
    isGone: gone === true,
    failure: failed === undefined ? null : { at: failed, cause: 'out of memory\nlast lines' },
  };
  return decide(followed(situation), shown, conversation, NOW);
}

const FAILED = shows({ checks: [check('failed')] });
const GREEN = shows({ checks: [check('passed')] });
const own = (change: Partial<FollowedComment> = {}): FollowedComment =>
  comment({ own: true, author: 'me', ...change });
const stranger = (change: Partial<FollowedComment> = {}): FollowedComment =>
  comment({ id: 's1', author: 'passer-by', mayWrite: false, ...change });
const bot = (change: Partial<FollowedComment> = {}): FollowedComment =>
  comment({ id: 'b1', author: 'codecov', isBot: true, ...change });

const many = (
  count: number,
  make: (change: Partial<FollowedComment>) => FollowedComment,
): FollowedComment[] => Array.from({ length: count }, (_none, index) => make({ id: `m${index}` }));

const says = (...comments: FollowedComment[]): FollowedChangeRequest => shows({ comments });
const green = (...comments: FollowedComment[]): FollowedChangeRequest => shows({ ...GREEN, comments });
const review = (): FollowedComment => comment({ resolved: null });
const stop = (change: Partial<FollowedComment> = {}): FollowedComment =>
  comment({ body: '@slipway stop', ...change });

const APPROVAL = { wishes: { until: 'approved' as const } };
const FAILURE_KNOWN = { known: { checks: ['run-failed'] } };
const RUNNING = shows({ checks: [check('failed'), check('pending')] });
const APPROVED = shows({ ...GREEN, approved: true });
const ANSWER = replyText('Done.', 1, 5);
const GONE = 'The sandbox of the conversation is gone.';

const table: [what: string, Situation, FollowedChangeRequest | null, outcome: string, reason?: string][] = [
  ['no checks yet', {}, shows(), 'wait'],
  ['a pending check', {}, shows({ checks: [check('passed'), check('pending')] }), 'wait'],
  ['a failing check', {}, FAILED, 'round'],
  ['a failing check beside a pending one', {}, RUNNING, 'round'],
  ['a failing check that is not followed', { wishes: { checks: false } }, FAILED, 'wait'],
  ['the same check run again', FAILURE_KNOWN, FAILED, 'wait'],
  ['another run of the check', { known: { checks: ['run-0'] } }, FAILED, 'round'],
  ['a failing check while it works', { works: true }, FAILED, 'wait'],
  ['a failing check of a push while it worked', { round: 1, known: { checks: ['run-0'] } }, FAILED, 'round'],
  [
    'a force push without checks',
    { round: 1, known: { checks: ['run-0'] } },
    shows({ headSha: 'f0' }),
    'wait',
  ],

  ['a comment', {}, says(comment()), 'round'],
  ['a comment while it works', { works: true }, says(comment()), 'wait'],
  ['a comment that is not followed', { wishes: { reviews: false } }, says(comment()), 'wait'],
  ['the same comment again', { known: { comments: ['c1'] } }, says(comment()), 'wait'],
  [
    'the same comment after hundreds of strangers',
    { known: { comments: ['c1', ...Array.from({ length: 499 }, (_, index) => `of-stranger-${index}`)] } },
    says(comment(), stranger()),
    'wait',
  ],
  ['a resolved comment', {}, says(comment({ resolved: true })), 'wait'],
  ['the text of a review', {}, says(review()), 'round'],
  ['a comment of the account while it works', { works: true }, says(own()), 'wait'],
  ['a comment of the account before its work ended', {}, says(own({ createdAt: IDLE - 1 })), 'wait'],
  ['a comment of the account just after its work', {}, says(own({ createdAt: IDLE + 4_000 })), 'round'],
  [
    'a comment by a clock that is ahead, after a round for such a comment',
    { round: 1, known: { doubted: 1 } },
    says(own({ createdAt: IDLE + 4_000 })),
    'wait',
  ],
  [
    'a comment just after the work, after a round for something else',
    { round: 2, known: { doubted: 1 } },
    says(own({ createdAt: IDLE + 4_000 })),
    'round',
  ],
  ['a comment of the account while it waits', {}, says(own({ createdAt: IDLE + 6_000 })), 'round'],
  [
    'an answer of the service whose id was lost',
    {},
    says(own({ createdAt: NOW, body: `${ANSWER}\n` })),
    'wait',
  ],
  ['the text of an answer by another account', {}, says(comment({ body: ANSWER })), 'round'],

  // Such as a report of coverage, or the address of a preview, as apps write after every push.
  ['a comment of an app', {}, says(bot({ resolved: null })), 'wait'],
  ['green with a comment of an app', {}, green(bot({ resolved: null })), 'reached'],
  ['a thread of an app', {}, says(bot()), 'round'],
  ['a comment in a thread of an app', {}, says(bot({ resolved: true }), comment()), 'round'],
  ['green with a new thread of an app', {}, green(bot()), 'round'],
  [
    'green with a thread of an app that was worked on, which apps do not resolve',
    { known: { comments: ['b1'] } },
    green(bot(), own({ id: 'r1', body: ANSWER })),
    'reached',
  ],
  [
    'green with a thread of an app in which a person asks',
    { known: { comments: ['b1', 'c1'] } },
    green(bot(), comment()),
    'wait',
  ],

  ['a comment of a stranger', {}, says(stranger()), 'wait'],
  ['a comment where the host does not say', {}, says(comment({ mayWrite: null })), 'round'],
  ['green with a thread of a stranger', {}, green(stranger()), 'reached'],
  ['a comment among many of strangers', {}, says(...many(40, stranger), comment()), 'round'],
  ['a comment in a thread of a stranger', {}, says(stranger(), comment()), 'round'],
  ['a comment of the account without its rights', {}, says(own({ mayWrite: false })), 'round'],

  ['a conflict', {}, shows({ conflicts: 'yes' }), 'round'],
  ['a conflict that is not followed', { wishes: { conflicts: false } }, shows({ conflicts: 'yes' }), 'wait'],
  [
    'a conflict that the host still computes',
    {},
    shows({ conflicts: 'unknown', checks: [check('passed')] }),
    'wait',
  ],
  ['the same conflict again', { known: { conflictOf: 'a1' } }, shows({ conflicts: 'yes' }), 'wait'],
  ['a conflict of another commit', { known: { conflictOf: 'a0' } }, shows({ conflicts: 'yes' }), 'round'],

  ['green', {}, GREEN, 'reached', 'The pull request is green.'],
  ['green while it works', { works: true }, GREEN, 'wait'],
  // https://github.com/jedbjorn/subfloor/issues/955: nine seconds after the push, two of six checks were listed.
  ['green just after its work', { idleFor: 29_999 }, GREEN, 'wait'],
  ['approved just after its work', { ...APPROVAL, idleFor: 0 }, shows({ approved: true }), 'wait'],
  ['merged just after its work', { idleFor: 0 }, shows({ state: 'merged' }), 'reached'],
  [
    'green with a known comment that is not resolved',
    { known: { comments: ['c1'] } },
    green(comment()),
    'wait',
  ],
  ['green with a known text of a review', { known: { comments: ['c1'] } }, green(review()), 'reached'],
  ['green with comments that are not followed', { wishes: { reviews: false } }, green(comment()), 'reached'],
  ['green as far as was read', {}, shows({ ...GREEN, truncated: true }), 'wait'],
  ['green where approval is wanted', APPROVAL, GREEN, 'wait'],
  ['approved', APPROVAL, APPROVED, 'reached', 'The pull request is approved.'],
  ['approved without checks', APPROVAL, shows({ approved: true }), 'reached'],
  [
    'approved with a known failure',
    { ...APPROVAL, ...FAILURE_KNOWN },
    shows({ ...FAILED, approved: true }),
    'wait',
  ],
  ['green and approved where merging is wanted', { wishes: { until: 'merged' } }, APPROVED, 'wait'],
  [
    'merged',
    { wishes: { until: 'merged' } },
    shows({ state: 'merged' }),
    'reached',
    'The pull request is merged.',
  ],
  ['merged before it was green', {}, shows({ ...FAILED, state: 'merged' }), 'reached'],
  ['merged while it works', { works: true }, shows({ state: 'merged' }), 'reached'],

  [
    'closed',
    {},
    shows({ ...FAILED, state: 'closed' }),
    'gave_up',
    'The pull request was closed without being merged.',
  ],
  ['closed while it works', { works: true }, shows({ state: 'closed' }), 'gave_up'],
  ['gone once', {}, null, 'wait'],
  ['gone twice', { known: { missing: true } }, null, 'gave_up', 'The pull request is gone.'],
  ['gone twice while it works', { known: { missing: true }, works: true }, null, 'gave_up'],
  ['its sandbox gone while it works', { works: true, gone: true }, shows(), 'gave_up', GONE],
  ['its sandbox gone when a check fails', { gone: true }, FAILED, 'gave_up', GONE],
  ['its sandbox gone when nothing happened', { gone: true }, shows(), 'wait'],
  ['its sandbox failed while it works', { works: true, failed: 'noon' }, shows(), 'restart'],
  [
    'its sandbox failed in an earlier round, too',
    { works: true, failed: 'noon', round: 2, known: { restart: { round: 1, failedAt: 'at nine' } } },
    shows(),
    'restart',
  ],
  [
    'its sandbox not started again yet',
    { works: true, failed: 'noon', round: 1, known: { restart: { round: 1, failedAt: 'noon' } } },
    shows(),
    'restart',
  ],
  [
    'its sandbox failed again in this round',
    { works: true, failed: 'noon', round: 1, known: { restart: { round: 1, failedAt: 'at nine' } } },
    shows(),
    'gave_up',
    'The sandbox was started again for this round, and failed again: out of memory',
  ],
  ['its sandbox failed when a check fails', { failed: 'noon' }, FAILED, 'round'],
  ['its sandbox failed when nothing happened', { failed: 'noon' }, shows(), 'wait'],
  ['green with its sandbox gone', { gone: true }, GREEN, 'reached'],
  ['its budget spent', { spent: true }, FAILED, 'gave_up', 'The budget of the conversation is spent.'],
  ['green with its budget spent', { spent: true }, GREEN, 'reached'],

  ['a failure in the last round but one', { round: 4 }, FAILED, 'round'],
  [
    'a failure after the last round',
    { round: 5 },
    FAILED,
    'gave_up',
    'All 5 rounds (max_rounds) are used up.',
  ],
  ['nothing new after the last round', { round: 5, known: { comments: ['c1'] } }, says(comment()), 'wait'],
  ['a known failure just after the last round', { round: 5, ...FAILURE_KNOWN }, FAILED, 'wait'],
  [
    'a known failure long after the last round',
    { round: 5, idleFor: 61_000, ...FAILURE_KNOWN },
    FAILED,
    'gave_up',
  ],
  ['a known failure after another round', { round: 1, idleFor: 61_000, ...FAILURE_KNOWN }, FAILED, 'wait'],
  ['a pending check after the last round', { round: 5, idleFor: 61_000, ...FAILURE_KNOWN }, RUNNING, 'wait'],
  ['green after the last round', { round: 5 }, GREEN, 'reached'],

  ['a stop by who may write', {}, says(stop({ body: 'Enough, @Slipway  stop please' })), 'stopped'],
  ['a stop while it works', { works: true }, says(stop()), 'stopped'],
  [
    'a stop with the account itself while it works',
    { works: true },
    says(own({ body: '@slipway stop' })),
    'stopped',
  ],
  ['a stop beside a failure', {}, shows({ ...FAILED, comments: [stop()] }), 'stopped'],
  ['a stop by who may not write', {}, says(stranger({ body: '@slipway stop' })), 'wait'],
  ['a stop among many of strangers', {}, says(...many(40, stranger), stop({ id: 'c2' })), 'stopped'],
  ['a stop that is quoted', {}, says(stop({ body: 'Quote: `@slipway stop`\n> @slipway stop' })), 'round'],
  ['a stop where the host does not say', {}, says(stop({ mayWrite: null })), 'round'],
  ['a stop of an earlier time', {}, says(stop({ resolved: true, createdAt: BEGUN - 60_000 })), 'wait'],
  ['the word within another one', {}, says(stop({ body: '@slipway stopwatch', resolved: true })), 'wait'],
];

describe('what a look decides', () => {
  it.each(table)('for %s', (...row) => {
    const [, situation, shown, outcome, reason] = row.slice(0, 5) as (typeof table)[number];
    const decision = decided(situation, shown);
    expect(decision.kind === 'end' ? decision.state : decision.kind).toBe(outcome);
    if (typeof reason === 'string') {
      expect(decision).toMatchObject({ reason });
    }
  });

  it('remembers what it tells of, and tells of comments that were written meanwhile', () => {
    const aside = own({ id: 'mine', createdAt: IDLE - 1 });
    const shown = shows({
      checks: [check('failed')],
      conflicts: 'yes',
      comments: [aside, comment(), comment({ id: 'done', resolved: true }), bot({ resolved: null })],
    });
    const decision = decided({ known: { checks: ['run-0'] } }, shown);
    expect(decision).toMatchObject({
      kind: 'round',
      findings: {
        checks: [{ id: 'run-failed' }],
        comments: [{ id: 'c1' }],
        conflict: true,
        aside: [{ id: 'mine' }, { id: 'b1' }],
      },
      known: {
        checks: ['run-0', 'run-failed'],
        comments: ['mine', 'b1', 'c1'],
        aside: [],
        conflictOf: 'a1',
        missing: false,
      },
    });
    expect(decided({ known: decision.known }, shown).kind).toBe('wait');
  });

  it('counts the start of a sandbox that had failed when the round began', () => {
    expect(decided({ round: 1, failed: 'noon' }, FAILED)).toMatchObject({
      kind: 'round',
      known: { restart: { round: 2, failedAt: 'noon' } },
    });
  });

  it('notes a round for comments that may be its own', () => {
    const just = own({ createdAt: IDLE + 4_000 });
    expect(decided({ round: 1 }, says(just))).toMatchObject({ known: { doubted: 2 } });
    expect(decided({ round: 1 }, says(just, comment({ id: 'c2' })))).toMatchObject({
      known: { doubted: null },
    });
  });

  it('looks again at what is green once the host had the time to show all checks', () => {
    expect(decided({ idleFor: 10_000 }, GREEN)).toMatchObject({ lookAt: new Date(NOW + 20_000) });
  });

  it('tells of a conflict again once there was none', () => {
    const { known } = decided({ known: { conflictOf: 'a1' } }, shows());
    expect(decided({ known }, shows({ conflicts: 'yes' })).kind).toBe('round');
  });

  it('leaves what is too much for one round to the next one', () => {
    const comments = many(40, comment);
    const decision = decided({}, shows({ comments }));
    expect(decision).toMatchObject({ kind: 'round', findings: { comments: { length: 30 } } });
    expect(decided({ known: decision.known }, shows({ comments }))).toMatchObject({
      kind: 'round',
      findings: { comments: { length: 10 } },
    });
  });
});
