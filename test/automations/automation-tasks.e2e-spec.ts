import { describe, expect, it } from '@jest/globals';
import type request from 'supertest';
import type { TestUser } from '../support/create-test-app.js';
import { until } from '../support/until.js';
import { useGitHosts } from '../support/use-git-hosts.js';

const PATH = '/api/automation/v1';

interface Task {
  git_provider: string;
  task_type: string;
  repo: string;
  issue_number: number;
}

interface Run {
  status: string;
  error_detail: string | null;
  run_metadata: { conversation_ids: string[]; tasks: Task[] | null };
}

const { hosts, app } = useGitHosts({ GIT_REQUEST_TIMEOUT_SECONDS: '60' });

function call(user: TestUser, method: 'get' | 'post', path: string): request.Test {
  return app.as(user).ask(method, path);
}

async function create(user: TestUser, tasks: object): Promise<string> {
  const trigger = { type: 'cron', schedule: '0 9 * * *' };
  const body = { name: 'Tasks', tasks, trigger, concurrency: { limit: 5 } };
  return (await call(user, 'post', `${PATH}/preset/prompt`).send(body).expect(201)).body.id;
}

/** The newest run once it has chosen its tasks, or has ended. */
async function chosen(user: TestUser, id: string): Promise<Run> {
  const { body: made } = await call(user, 'post', `${PATH}/${id}/dispatch`).expect(201);
  let run: Run | undefined;
  await until(async () => {
    const { body } = await call(user, 'get', `${PATH}/${id}/runs`).expect(200);
    run = body.runs.find((each: { id: string }) => each.id === made.id);
    return run !== undefined && (run.run_metadata.tasks !== null || run.status === 'FAILED');
  });
  return run as Run;
}

describe('a run of suggested tasks', () => {
  it('takes up the most pressing ones, which no run within a day takes up again', async () => {
    const user = await app.createUser();
    await call(user, 'post', '/api/add-git-providers').send(hosts.tokens).expect(200);
    const { body: suggested } = await call(user, 'get', '/api/user/suggested-tasks?providers=github').expect(
      200,
    );
    const id = await create(user, { providers: ['github'], limit: 2 });

    const [first, second] = await Promise.all([chosen(user, id), chosen(user, id)]);

    const taken = [...(first.run_metadata.tasks ?? []), ...(second.run_metadata.tasks ?? [])];
    expect(taken).toHaveLength(4);
    expect(taken).toEqual(expect.arrayContaining(suggested.slice(0, 4)));
    expect(first.run_metadata.conversation_ids).toHaveLength(2);
    await until(async () => {
      const rows = await app.dataSource.query<{ task: Task }[]>(
        `SELECT request -> 'suggested_task' AS task FROM app_conversation_start_tasks WHERE user_id = $1`,
        [user.id],
      );
      return rows.length === 4 && rows.every(({ task }) => task !== null);
    });
  });

  it('is completed when there is none', async () => {
    const user = await app.createUser();
    await call(user, 'post', '/api/add-git-providers').send(hosts.tokens).expect(200);
    const id = await create(user, { task_types: ['OPEN_ISSUE'], providers: ['bitbucket'] });
    const run = await chosen(user, id);
    expect(run.run_metadata.tasks).toEqual([]);
    await until(async () => {
      const { body } = await call(user, 'get', `${PATH}/${id}/runs`).expect(200);
      return body.runs[0].status === 'COMPLETED' && /no suggested task/.test(body.runs[0].error_detail);
    });
  });

  it('fails without a token, and says so', async () => {
    const user = await app.createUser();
    const run = await chosen(user, await create(user, { limit: 1 }));
    expect(run).toMatchObject({ status: 'FAILED', error_detail: 'No providers set.' });
  });
});
