import { Injectable, Logger, Module } from '@nestjs/common';
import pLimit from 'p-limit';
import { jittered, KeyedLimit } from '@slipway/common/async.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { BackgroundLoop } from '../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import { DomainError } from '../common/errors/domain-error.js';
import { AppConfig } from '../config/app-config.js';
import { mayPass } from '../git-providers/git-provider-problem.js';
import type { FollowedChangeRequest, FollowedComment } from '@slipway/git-providers/git-provider.js';
import { RepositoryAccessService } from '../git-providers/repository-access.service.js';
import { ConversationQueries } from '../v1/app-conversations/conversation.queries.js';
import type { ConversationRow } from '../v1/app-conversations/conversation-row.js';
import type { FollowedPullRequest } from '../v1/app-conversations/followed/followed-pull-request.entity.js';
import {
  FollowedPullRequestRepository,
  LOOKS_OF_A_USER,
} from '../v1/app-conversations/followed/followed-pull-request.repository.js';
import { GitProvidersModule } from '../git-providers/git-providers.module.js';
import { OutboundWebhooksModule } from '../outbound-webhooks/outbound-webhooks.module.js';
import { AppConversationsModule } from '../v1/app-conversations/app-conversations.module.js';
import { EventsModule } from '../v1/events/events.module.js';
import { EventsService } from '../v1/events/events.service.js';
import { FollowRoundsService } from './follow-rounds.service.js';
import { type LinkedPullRequest, RoundTalk } from './round-talk.js';

const EVERY_MS = 2_000;
/** While nothing is followed. */
const IDLE_MS = 10_000;
/** A look that takes longer counts for nothing, and another one begins. */
const LEASE_MS = 120_000;
const MAX_LOOKS = 500;
/** Questions to a host on behalf of one user at a time. */
const QUESTIONS_OF_A_USER = 2;
/** Accounts whose rights are asked for at a time for one pull request; each is asked for once in five minutes. */
const QUESTIONS_ABOUT_RIGHTS = 5;
const UNLINKED_POLL_MS = 10_000;
const MAX_PAUSE_MS = 900_000;

/** Looks at followed pull requests that are due, on whichever replica takes them first (docs/adr/0062). */
@Injectable()
export class FollowWorker extends BackgroundLoop {
  private readonly ofUsers = new KeyedLimit(QUESTIONS_OF_A_USER);
  private looks = 0;

  constructor(
    private readonly followed: FollowedPullRequestRepository,
    private readonly conversations: ConversationQueries,
    private readonly repositories: RepositoryAccessService,
    private readonly rounds: FollowRoundsService,
    private readonly talk: RoundTalk,
    private readonly events: EventsService,
    private readonly clock: Clock,
    private readonly config: AppConfig,
  ) {
    super(EVERY_MS, new Logger('Follow'), 'failed to find followed pull requests');
  }

  protected async work(): Promise<number | void> {
    const now = this.clock.now();
    await this.noteWork(now);
    const { rows: claimed, nextAt } = await this.followed.claim(LEASE_MS, MAX_LOOKS - this.looks);
    const linked = await Promise.all(
      claimed.map((row) => this.linked(row).catch((error: unknown) => this.reportFailure(row, error))),
    );
    const asked = Map.groupBy(
      linked.filter((each) => each !== null),
      // What failed may fail the others, too.
      ({ row, provider, repository }) =>
        [row.userId, provider ?? repository, row.failures > 0 && row.conversationId].join(' '),
    );
    for (const group of asked.values()) {
      this.begin(group);
    }
    return nextAt === null ? jittered(IDLE_MS) : undefined;
  }

  /**
   * Notes when the work ended according to the agent's log, which is seen some seconds later; a time in the future counts as
   * now.
   */
  private async noteWork(now: number): Promise<void> {
    const changed = await this.conversations.changedWork(new Date(now));
    const ends = await this.events.endsOfWork(changed.flatMap(({ id, ended }) => (ended ? [id] : [])));
    const noted = changed.map(({ id, attempt, ended, seenAt }) => ({
      id,
      attempt,
      endedAt: ended ? new Date(Math.min(now, (ends.get(id) ?? seenAt).getTime())) : null,
    }));
    await this.followed.noteWork(noted, new Date(now));
  }

  /** Returns null until the conversation has a pull request. */
  private async linked(row: FollowedPullRequest): Promise<LinkedPullRequest | null> {
    const conversation = await this.conversations.find(row.userId, row.conversationId);
    if (conversation === null) {
      return null;
    }
    const repository = row.number === null ? conversation.selected_repository : row.repository;
    const number =
      row.number ?? pullRequestOf(conversation) ?? (await this.talk.namedPullRequest(row, repository));
    if (number === null || repository === null) {
      const now = this.clock.now();
      // One that has rested for long seldom names one yet; its work, an event and the opening of one wake it.
      const rareMs = Math.min((now - (row.idleSince?.getTime() ?? now)) / 10, MAX_PAUSE_MS);
      const next = new Date(now + Math.max(Math.min(UNLINKED_POLL_MS, this.pollMs), rareMs));
      await this.followed.settle(this.followed.manager, row, {}, next);
      return null;
    }
    const url = row.url ?? conversation.pull_requests.find((each) => each.number === number)?.url ?? null;
    const provider = row.provider ?? conversation.git_provider;
    return { row, conversation, provider, repository, number, url };
  }

  /** Slow hosts do not hold up the others. */
  private begin(group: readonly LinkedPullRequest[]): void {
    const userId = group[0]?.row.userId ?? '';
    this.looks += group.length;
    const look = this.ofUsers
      .run(userId, () => this.lookAt(group))
      .catch((error: unknown) =>
        this.logger.warn('failed to look at followed pull requests', { error: errorMessage(error) }),
      )
      .finally(() => {
        this.looks -= group.length;
      });
    this.beside(look);
  }

  /** One question for all that one credential shows. */
  private async lookAt(group: readonly LinkedPullRequest[]): Promise<void> {
    for (let first = 0; first < group.length; first += LOOKS_OF_A_USER) {
      const some = group.slice(first, first + LOOKS_OF_A_USER);
      const reading = this.read(some);
      for (const [index, followed] of some.entries()) {
        await this.lookAtOne(
          followed,
          reading.then((shown) => shown[index] ?? null),
        );
      }
    }
  }

  private async read(group: readonly LinkedPullRequest[]): Promise<(FollowedChangeRequest | null)[]> {
    const [first] = group;
    if (first === undefined) {
      return [];
    }
    const { userId } = first.row;
    const shown = await this.repositories.changeRequests(
      userId,
      first.provider,
      first.repository,
      (changes) => changes.read(group),
    );
    return Promise.all(
      group.map(async (linked, index) => {
        const found = shown[index] ?? null;
        return found && { ...found, comments: await this.judged(linked, found.comments) };
      }),
    );
  }

  /** Asks the host which authors may write to the repository. An author that it does not tell of counts as a stranger. */
  private async judged(
    { row: { userId }, provider, repository }: LinkedPullRequest,
    comments: readonly FollowedComment[],
  ): Promise<FollowedComment[]> {
    const mayWrite = async (name: string): Promise<boolean> => {
      try {
        const actor = { name, id: null, isOwner: false };
        return (await this.repositories.rightsOf(userId, provider, repository, actor)).mayWrite;
      } catch (error) {
        if (error instanceof DomainError && !mayPass(error)) {
          return false;
        }
        throw error;
      }
    };
    const asked = pLimit(QUESTIONS_ABOUT_RIGHTS);
    return asked.map(comments, async (comment) =>
      comment.mayWrite !== null || comment.own || comment.isBot
        ? comment
        : { ...comment, mayWrite: await mayWrite(comment.account ?? comment.author) },
    );
  }

  /** Others do not wait for one that fails. */
  private async lookAtOne(
    followed: LinkedPullRequest,
    reading: Promise<FollowedChangeRequest | null>,
  ): Promise<void> {
    try {
      await this.rounds.settle(followed, await reading, new Date(this.clock.now() + this.pollMs));
    } catch (error) {
      if (error instanceof DomainError) {
        await this.postpone(followed, error);
        return;
      }
      this.reportFailure(followed.row, error);
    }
  }

  /** The next look is after the lease. */
  private reportFailure({ conversationId }: FollowedPullRequest, error: unknown): null {
    const fields = { conversation_id: conversationId, error: errorMessage(error) };
    this.logger.warn('failed to settle followed pull request', fields);
    return null;
  }

  private async postpone({ row, ...linked }: LinkedPullRequest, error: DomainError): Promise<void> {
    const failures = row.failures + 1;
    const pauseMs = Math.max(
      this.pollMs,
      Math.min(this.pollMs * 2 ** Math.min(failures, 10), MAX_PAUSE_MS),
      (error.retryAfterSeconds ?? 0) * 1000,
    );
    const { provider, repository, number, url } = linked;
    const change = { provider, repository, number, url, failures, reason: error.message };
    await this.followed.settle(this.followed.manager, row, change, new Date(this.clock.now() + pauseMs));
  }

  private get pollMs(): number {
    return this.config.git.followPollSeconds * 1000;
  }
}

/** The newest that it opened, else the newest that it is about. */
function pullRequestOf({ pull_requests: opened, pr_number: about }: ConversationRow): number | null {
  return opened.at(-1)?.number ?? about.at(-1) ?? null;
}

@Module({
  imports: [AppConversationsModule, EventsModule, GitProvidersModule, OutboundWebhooksModule],
  providers: [FollowRoundsService, FollowWorker, RoundTalk],
})
export class FollowModule {}
