import request from 'supertest';
import { ConversationStarter } from '../../src/v1/app-conversations/start/conversation-starter.js';
import {
  type StartRequest,
  type StartTaskStatus,
  StartTask,
} from '../../src/v1/app-conversations/start-task.entity.js';
import type { TestApp, TestUser } from './create-test-app.js';
import { sampleStartRequest } from './sample-start-request.js';
import { until } from './until.js';

/** Starts conversations of one user and looks what becomes of them. */
export class StartsClient {
  constructor(
    private readonly app: TestApp,
    readonly user: TestUser,
  ) {}

  async settings(members: object): Promise<void> {
    await request(this.app.url).post('/api/settings').set(this.user.headers).send(members).expect(200);
  }

  start(given: Partial<StartRequest> = {}, key: string | null = null): Promise<StartTask> {
    const starter = { id: this.user.id, repositories: null };
    return this.app.app.get(ConversationStarter).start(starter, sampleStartRequest(given), key);
  }

  read(id: string): Promise<StartTask> {
    return this.app.dataSource.getRepository(StartTask).findOneByOrFail({ id });
  }

  /** The task once it is in the status; an end that is not expected is told with its detail. */
  async reached({ id }: Pick<StartTask, 'id'>, status: StartTaskStatus): Promise<StartTask> {
    let task = await this.read(id);
    await until(async () => {
      task = await this.read(id);
      return [status, 'READY', 'ERROR'].includes(task.status);
    });
    if (task.status !== status) {
      throw new Error(`the start came to ${task.status} instead of ${status}: ${task.detail}`);
    }
    return task;
  }

  conversations(): Promise<{ id: string }[]> {
    return this.app.dataSource.query('SELECT id FROM app_conversations WHERE user_id = $1', [this.user.id]);
  }

  sandboxes(): Promise<{ id: string; status: string; status_detail: string | null }[]> {
    return this.app.dataSource.query(
      'SELECT id, status, status_detail FROM sandboxes WHERE user_id = $1 ORDER BY created_at',
      [this.user.id],
    );
  }
}

/** A first message. */
export function say(text: string): Partial<StartRequest> {
  return { initial_message: { role: 'user', content: [{ type: 'text', text }], run: true } };
}
