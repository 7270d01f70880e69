import { jest } from '@jest/globals';
import request from 'supertest';
import { FollowWorker } from '../../src/follow/follow.worker.js';
import type { ProviderType } from '@slipway/git-providers/git-provider.js';
import type { FollowDto, FollowStateDto } from '../../src/v1/app-conversations/followed/follow.dto.js';
import type { TestApp, TestUser } from './create-test-app.js';
import { readState } from './read-state.js';
import { StartsClient } from './starts-client.js';
import { until } from './until.js';

export interface FollowingConversation {
  id: string;
  sandboxId: string;
}

interface Place {
  repository: string;
  number: number | null;
  provider?: ProviderType;
}

interface ConversationAnswer {
  sandbox_id: string;
  sandbox_status: string;
  execution_status: string | null;
  session_api_key: string;
  follow: FollowStateDto | null;
}

/** Starts applications that look at pull requests when a test says so: a turn of their own may hold what it makes due. */
export async function withoutOwnLooks<T>(start: () => Promise<T>): Promise<T> {
  const bootstrap = jest.spyOn(FollowWorker.prototype, 'onApplicationBootstrap').mockReturnValue();
  try {
    return await start();
  } finally {
    bootstrap.mockRestore();
  }
}

/** Conversations of one user that follow pull requests of a fake host. */
export class FollowsClient {
  constructor(
    private readonly apps: readonly [TestApp, ...TestApp[]],
    private readonly user: TestUser,
  ) {}

  /** Started without a clone, then about the repository. */
  async start(
    { repository, number, provider = 'github' }: Place,
    follow: Partial<FollowDto> = {},
    message = 'say done',
  ): Promise<FollowingConversation> {
    const [app] = this.apps;
    const { body: task } = await request(app.url)
      .post('/api/v1/app-conversations')
      .set(this.user.headers)
      .send({ follow, initial_message: { content: [{ type: 'text', text: message }] } })
      .expect(200);
    const started = await new StartsClient(app, this.user).reached(task, 'READY');
    const id = started.appConversationId.replaceAll('-', '');
    await app.dataSource.query(
      `UPDATE app_conversations SET selected_repository = $2, git_provider = $3, pr_number = $4 WHERE id = $1`,
      [id, repository, provider, number === null ? [] : [number]],
    );
    return { id, sandboxId: started.sandboxId };
  }

  async conversation({ id }: Pick<FollowingConversation, 'id'>): Promise<ConversationAnswer> {
    const { body } = await request(this.apps[0].url)
      .get(`/api/v1/app-conversations?ids=${id}`)
      .set(this.user.headers)
      .expect(200);
    return body[0];
  }

  async state(which: FollowingConversation): Promise<FollowStateDto | null> {
    return (await this.conversation(which)).follow;
  }

  /** Looks as if the poll were over, in all applications at once. */
  async look(which: FollowingConversation): Promise<void> {
    await this.apps[0].dataSource.query(
      `UPDATE followed_pull_requests SET next_look_at = date_trunc('milliseconds', now()) WHERE conversation_id = $1 AND next_look_at IS NOT NULL`,
      [which.id],
    );
    await this.work();
  }

  /** Looks once the work of an agent that has answered counts as over. */
  async lookLater(which: FollowingConversation): Promise<void> {
    await this.afterAnswer(which, () => this.look(which));
  }

  /** One turn in all applications at once, and the looks that it begins. */
  async work(): Promise<void> {
    await Promise.all(this.apps.map(({ app }) => app.get(FollowWorker).now()));
  }

  /** Looks until the state holds. */
  async until(which: FollowingConversation, expected: Partial<FollowStateDto>): Promise<void> {
    await until(async () => {
      await this.lookLater(which);
      const state = await this.state(which);
      return Object.entries(expected).every(
        ([name, value]) => state?.[name as keyof FollowStateDto] === value,
      );
    });
  }

  /** The agent's work is over, and noticed. */
  async idle(which: FollowingConversation): Promise<void> {
    await until(async () => {
      await this.afterAnswer(which, () => this.work());
      const [row] = await this.apps[0].dataSource.query<{ idle_since: Date | null }[]>(
        'SELECT idle_since FROM followed_pull_requests WHERE conversation_id = $1',
        [which.id],
      );
      return row?.idle_since !== null;
    });
  }

  /** Works as if the second were over after which the work of an agent that has answered counts as over. */
  private async afterAnswer({ id }: FollowingConversation, work: () => Promise<void>): Promise<void> {
    const [row] = await this.apps[0].dataSource.query<{ source: string }[]>(
      `SELECT body->>'source' AS source FROM conversation_events
       WHERE conversation_id = $1 AND kind = 'MessageEvent' ORDER BY seq DESC LIMIT 1`,
      [id],
    );
    const aheadMs = row?.source === 'agent' ? 1_001 : 0;
    this.apps.forEach((app) => {
      app.clock.advance(aheadMs);
      readState(app, id);
    });
    await work();
    this.apps.forEach(({ clock }) => clock.advance(-aheadMs));
  }

  /** What the agent has cost so far is known. */
  async counted({ id }: FollowingConversation): Promise<void> {
    await until(async () => {
      const [row] = await this.apps[0].dataSource.query<{ metrics: object | null }[]>(
        'SELECT metrics FROM followed_conversations WHERE id = $1',
        [id],
      );
      return row?.metrics !== null;
    });
  }

  async pause({ sandboxId }: FollowingConversation): Promise<void> {
    await request(this.apps[0].url)
      .post(`/api/v1/sandboxes/${sandboxId}/pause`)
      .set(this.user.headers)
      .expect(200);
  }

  /** The agent's work ended a minute ago. */
  async rest({ id }: FollowingConversation): Promise<void> {
    await this.apps[0].dataSource.query(
      `UPDATE followed_pull_requests SET idle_since = idle_since - interval '1 minute' WHERE conversation_id = $1`,
      [id],
    );
  }

  /** What the user said, the first message included. */
  async told({ id }: FollowingConversation): Promise<string[]> {
    const { body } = await request(this.apps[0].url)
      .get(`/api/v1/conversation/${id}/events/search?kind__eq=MessageEvent&limit=100`)
      .set(this.user.headers)
      .expect(200);
    const events: { source: string; llm_message: { content: { text: string }[] } }[] = body.items;
    return events
      .filter(({ source }) => source === 'user')
      .map(({ llm_message: message }) => message.content.map(({ text }) => text).join('\n'));
  }
}
