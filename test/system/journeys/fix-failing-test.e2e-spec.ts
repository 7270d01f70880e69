import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { EventSource } from '../../support/event-source.js';
import { until } from '../../support/until.js';
import { type ApiClient, type Json, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { onMessage, shell } from './support/script.js';

const REPOSITORY = {
  'add.sh': 'echo $(($1 - $2))\n',
  'test.sh': '[ "$(sh add.sh 1 2)" = 3 ] && echo passed || { echo "not passed"; exit 1; }\n',
  '.openhands/setup.sh': 'echo set up >> "$HOME/setup.txt"\nexport TESTS=test.sh\n',
  '.openhands/pre-commit.sh': 'sh test.sh\n',
};
const WHERE = 'fix/it';

/** What a model does that looks at what it sees: reproduces, repairs, checks, commits, publishes. */
const fixes = (results: string[]) => {
  const last = results.at(-1) ?? '';
  switch (results.length) {
    case 0:
      return call('terminal', { command: `git fetch -q && git checkout -q ${WHERE} && sh test.sh` });
    case 1:
      return last.includes('not passed')
        ? call('file_editor', {
            command: 'str_replace',
            path: 'add.sh',
            old_str: '$1 - $2',
            new_str: '$1 + $2',
          })
        : call('finish', { message: 'Nothing fails.' });
    case 2:
      return call('terminal', {
        command: 'sh "${TESTS:?}" && git commit -qam "fix: add" && git status --short',
      });
    case 3:
      return call('create_pull_request', { source_branch: WHERE, title: 'Fix it', body: 'It subtracted.' });
    default:
      return call('finish', { message: 'Fixed.' });
  }
};

describe('a failing check, from the list of tasks to its pull request', () => {
  let world: JourneyWorld;
  let user: ApiClient;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    await world.start();
    user = await world.createUser({ git_user_name: 'Ada Byron', git_user_email: 'ada@byron.example' });
    await world.giveToken(user);
    await world.git.commit('octo/app', 'main', REPOSITORY);
    await world.git.commit('octo/app', WHERE, { 'why.txt': 'a branch' });
    onMessage('Make them pass', fixes);
  });

  afterAll(async () => {
    await world.close();
  });

  const finished = (stream: EventSource) => () =>
    stream.events.some(
      ({ data }) => jsonText(data, 'key') === 'execution_status' && jsonText(data, 'value') === 'finished',
    );
  const numbers = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index);

  it('goes all the way, rests, goes on, and leaves nothing behind', async () => {
    const tasks = await user.get('/api/user/suggested-tasks?task_types=FAILING_CHECKS');
    const [task] = (Array.isArray(tasks) ? tasks : []).filter(
      (one: Json) => jsonAt(one, 'issue_number') === 15,
    );

    const { body } = await user.send('POST', '/api/v1/app-conversations/stream-start', {
      suggested_task: task,
    });
    const steps: Json[] = Array.isArray(body) ? body : [];
    const statuses = steps.map((step) => text(step, 'status'));
    expect([statuses[0], statuses.at(-1)]).toEqual(['WORKING', 'READY']);
    const id = text(steps.at(-1), 'app_conversation_id');
    const sandboxId = text(steps.at(-1), 'sandbox_id');

    const stream = await user.stream(id);
    await until(finished(stream));
    expect(stream.ids).toEqual(numbers(1, stream.ids.length));
    const kinds = stream.events.map(({ event }) => event);
    expect(kinds.filter((kind) => ['ActionEvent', 'ObservationEvent'].includes(kind))).toEqual([
      ...Array.from({ length: 4 }, () => ['ActionEvent', 'ObservationEvent']).flat(),
      'ActionEvent',
      'ObservationEvent',
    ]);

    const { output } = await user.run(
      sandboxId,
      'git -C app log -1 --format="%s|%an|%ae|%H" && cat ~/setup.txt',
    );
    const head = await world.git.tip('octo/app', WHERE);
    expect(output).toBe(`fix: add|Ada Byron|ada@byron.example|${head}\nset up\n`);
    // By the names that clients assume, whatever the folder is called on this machine.
    const [repository, here] = ['/workspace/project/app', `/api/v1/app-conversations/${id}`];
    await user.run(sandboxId, 'echo new > app/new.txt');
    expect(await user.get(`${here}/file?file_path=${repository}/add.sh`)).toContain('$1 + $2');
    expect(await user.get(`${here}/git/changes?path=${repository}&ref=HEAD`)).toEqual([
      { status: 'ADDED', path: 'new.txt' },
    ]);
    expect(await user.get(`${here}/git/diff?path=${repository}/new.txt`)).toEqual({
      original: '',
      modified: 'new\n',
    });
    await user.run(sandboxId, 'rm app/new.txt');
    const conversation = await user.conversation(id);
    expect(jsonList(conversation, 'pr_number')).toEqual([15, 16]);
    expect(conversation).toMatchObject({ selected_repository: 'octo/app', trigger: 'suggested_task' });
    expect(world.hub.changeRequests.at(-1)).toMatchObject({
      number: 16,
      sourceBranch: WHERE,
      title: 'Fix it',
    });

    await user.post(`/api/v1/sandboxes/${sandboxId}/pause`);
    await user.sandboxIn(sandboxId, 'PAUSED');
    await until(() => world.sandboxProcesses(sandboxId).length === 0);
    expect(await user.conversation(id)).toMatchObject({ sandbox_status: 'PAUSED', execution_status: null });
    const { lastId } = stream;
    stream.close();

    await user.post(`/api/v1/sandboxes/${sandboxId}/resume`);
    await user.sandboxIn(sandboxId, 'RUNNING');
    const again = await user.stream(id, lastId);
    await user.say(id, shell('git log --oneline | wc -l; cat add.sh'));
    await until(finished(again));
    expect(again.ids).toEqual(numbers(Number(lastId) + 1, Number(again.lastId)));
    expect(JSON.stringify(again.events)).toContain('$1 + $2');
    again.close();
    expect(JSON.stringify(await user.events(id))).not.toContain(world.hub.token);

    await user.remove(`/api/v1/app-conversations/${id}`);
    await until(async () => (await world.sandboxFolders()).length === 0);
    expect(world.sandboxProcesses()).toEqual([]);
    expect(await user.conversation(id)).toBeNull();
    await until(async () => (await world.count('sandboxes')) === 0);
    for (const table of ['app_conversations', 'conversation_events', 'followed_conversations']) {
      expect([table, await world.count(table)]).toEqual([table, 0]);
    }
  });
});
