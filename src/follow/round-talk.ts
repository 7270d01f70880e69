import { Injectable, Logger } from '@nestjs/common';
import { DomainError } from '../common/errors/domain-error.js';
import type {
  FollowedCheck,
  GitProvider,
  ProviderCall,
  ProviderType,
} from '../git-providers/git-provider.js';
import { RepositoryAccessService } from '../git-providers/repository-access.service.js';
import type { ConversationRow } from '../v1/app-conversations/conversation.queries.js';
import type { FollowedPullRequest } from '../v1/app-conversations/followed/followed-pull-request.entity.js';
import { FollowedPullRequestRepository } from '../v1/app-conversations/followed/followed-pull-request.repository.js';
import { EventsService } from '../v1/events/events.service.js';
import { replyText } from './round-message.js';

const MAX_OUTPUTS = 5;

export interface LinkedPullRequest {
  row: FollowedPullRequest;
  conversation: ConversationRow;
  provider: ProviderType | null;
  repository: string;
  number: number;
  url: string | null;
}

/** What is read from, and written to, the host for one round. A failure of the host leaves out a part of it. */
@Injectable()
export class RoundTalk {
  private readonly logger = new Logger('Follow');

  constructor(
    private readonly followed: FollowedPullRequestRepository,
    private readonly repositories: RepositoryAccessService,
    private readonly events: EventsService,
  ) {}

  /** One that the agent opened at the host itself, and named when it had finished; null where it named several. */
  async namedPullRequest(
    { userId, conversationId, idleSince }: FollowedPullRequest,
    repository: string | null,
  ): Promise<number | null> {
    const said =
      repository === null || idleSince === null ? null : await this.events.lastAnswer(userId, conversationId);
    return said === null || repository === null ? null : namedIn(said, repository);
  }

  /** The last lines of the first failing checks, by id. */
  async outputs(linked: LinkedPullRequest, checks: readonly FollowedCheck[]): Promise<Map<string, string>> {
    const outputs = new Map<string, string>();
    for (const check of checks.slice(0, MAX_OUTPUTS)) {
      const output = await this.orNull('read the output of a check', linked, (adapter, call) =>
        adapter.readCheckOutput(linked, check, call),
      );
      outputs.set(check.id, output ?? '');
    }
    return outputs;
  }

  /** Answers each thread of the round at most once, also over crashes; returns the ids of the answers. */
  async answer(linked: LinkedPullRequest): Promise<string[]> {
    const { row } = linked;
    if (row.unanswered.length === 0) {
      return [];
    }
    const said = (await this.events.lastAnswer(row.userId, row.conversationId)) ?? '';
    const text = replyText(said, row.round, row.wishes.max_rounds);
    const ids: string[] = [];
    for (;;) {
      const comment = await this.followed.takeUnanswered(row);
      if (comment === null) {
        return ids;
      }
      const answer = await this.orNull('answer a comment', linked, (adapter, call) =>
        adapter.replyToComment(linked, comment, text, call),
      );
      ids.push(...(answer === null ? [] : [answer.id]));
    }
  }

  private async orNull<T>(
    verb: string,
    { row, provider, repository }: LinkedPullRequest,
    question: (adapter: GitProvider, call: ProviderCall) => Promise<T>,
  ): Promise<T | null> {
    try {
      return await this.repositories.ask(row.userId, provider, repository, question);
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      this.logger.warn(`failed to ${verb}`, { conversation_id: row.conversationId, error: error.message });
      return null;
    }
  }
}

/** The number in addresses of pull requests of the repository, if that is one and the same. */
export function namedIn(text: string, repository: string): number | null {
  const [project = '', slug = ''] = repository.split('/');
  const places = [repository, `projects/${project}/repos/${slug}`].map((place) =>
    place.replaceAll(/[^\w/-]/g, String.raw`\$&`),
  );
  const address = new RegExp(
    `/(?:${places.join('|')})/(?:-/)?(?:pull|merge_requests|pull-requests)/([0-9]{1,9})(?![0-9])`,
    'gi',
  );
  const numbers = new Set(Array.from(text.matchAll(address), ([, number]) => Number(number)));
  const [only = null] = numbers;
  return numbers.size === 1 ? only : null;
}
