import { expect } from '@jest/globals';
import { jsonAt, jsonText } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { EventSource } from '../../support/event-source.js';
import { until } from '../../support/until.js';
import { type ApiClient, type Json, type Started } from '../../system/journeys/support/api-client.js';
import type { JourneyWorld } from '../../system/journeys/support/journey-world.js';
import { onMessage, shell } from '../../system/journeys/support/script.js';

const REPOSITORY = 'octo/app';
const BRANCH = 'fix/it';
const ISSUE = 15;
const FILES = {
  'add.sh': 'echo $(($1 - $2))\n',
  'test.sh': '[ "$(sh add.sh 1 2)" = 3 ] && echo passed || { echo "not passed"; exit 1; }\n',
};

/** A user whose failing check the model of the journey repairs, commits and publishes. */
export async function userWithFailingCheck(journey: JourneyWorld): Promise<ApiClient> {
  const user = await journey.createUser({ git_user_name: 'Ada Byron', git_user_email: 'ada@byron.example' });
  await journey.giveToken(user);
  await journey.git.commit(REPOSITORY, 'main', FILES);
  await journey.git.commit(REPOSITORY, BRANCH, { 'why.txt': 'a branch' });
  onMessage('Make them pass', (results) => {
    const repair = `git fetch -q && git checkout -q ${BRANCH} && sed -i 's/ - / + /' add.sh && sh test.sh`;
    switch (results.length) {
      case 0:
        return call('terminal', { command: `${repair} && git commit -qam "fix: add"` });
      case 1:
        return call('create_pull_request', {
          source_branch: BRANCH,
          title: 'Fix it',
          body: 'It subtracted.',
        });
      default:
        return call('finish', { message: 'Fixed.' });
    }
  });
  return user;
}

/** The main job and what follows from it: the suggested task, its conversation, the commit, the pull request. */
export async function fixFailingCheck(user: ApiClient, journey: JourneyWorld): Promise<Started> {
  const tasks = await user.get('/api/user/suggested-tasks?task_types=FAILING_CHECKS');
  const [task] = (Array.isArray(tasks) ? tasks : []).filter(
    (one: Json) => jsonAt(one, 'issue_number') === ISSUE,
  );
  const started = await user.started({ suggested_task: task });
  const stream = await user.stream(started.id);
  await until(() => hasFinished(stream));
  expect(stream.ids).toEqual(numbers(1, stream.ids.length));
  stream.close();
  const { output } = await user.run(started.sandboxId, 'git -C app log -1 --format="%s|%an|%H"');
  expect(output).toBe(`fix: add|Ada Byron|${await journey.git.tip(REPOSITORY, BRANCH)}\n`);
  expect(journey.hub.changeRequests.at(-1)).toMatchObject({ sourceBranch: BRANCH, title: 'Fix it' });
  return started;
}

/** Pauses the sandbox until nothing of it runs, resumes it, and goes on with the conversation without a gap. */
export async function pauseAndGoOn(
  user: ApiClient,
  { id, sandboxId }: Started,
  podsOf: (sandboxId: string) => Promise<string[]>,
): Promise<void> {
  const before = (await user.events(id)).length;
  await user.post(`/api/v1/sandboxes/${sandboxId}/pause`);
  await user.sandboxIn(sandboxId, 'PAUSED');
  await until(async () => (await podsOf(sandboxId)).length === 0);
  await user.post(`/api/v1/sandboxes/${sandboxId}/resume`);
  await user.sandboxIn(sandboxId, 'RUNNING');
  expect(await podsOf(sandboxId)).toHaveLength(1);
  const stream = await user.stream(id, String(before));
  await user.say(id, shell('cat add.sh'));
  await until(() => hasFinished(stream));
  expect(stream.ids).toEqual(numbers(before + 1, before + stream.ids.length));
  expect(JSON.stringify(stream.events)).toContain('$1 + $2');
  stream.close();
}

/** Deletes the conversation, and waits until nothing of it and of its sandbox is left. */
export async function removeWhole(
  user: ApiClient,
  { id, sandboxId }: Started,
  remains: (sandboxId: string) => Promise<string[]>,
): Promise<void> {
  await user.remove(`/api/v1/app-conversations/${id}`);
  await until(async () => (await remains(sandboxId)).length === 0);
  expect(await user.conversation(id)).toBeNull();
}

function hasFinished(stream: EventSource): boolean {
  return stream.events.some(
    ({ data }) => jsonText(data, 'key') === 'execution_status' && jsonText(data, 'value') === 'finished',
  );
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
