import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import type { ServiceProcess } from '../../support/service-process.js';
import { until } from '../../support/until.js';
import { type ApiClient, idsOf, text } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onLongWork, shell } from './support/script.js';

const STARTS = 6;
const STEPS = 8;

describe('two processes of one service', () => {
  let world: JourneyWorld;
  let first: ServiceProcess;
  let second: ServiceProcess;
  let user: ApiClient;

  beforeAll(async () => {
    world = await JourneyWorld.open();
    first = await world.start();
    second = await world.start();
    user = await world.createUser();
    await world.giveToken(user);
    await world.git.commit('octo/app', 'main', { '.openhands/setup.sh': 'echo done >> "$HOME/done.txt"\n' });
  });

  afterAll(async () => {
    await world.close();
  });

  it('refuses a process of another host that says no address', async () => {
    const refused = world.start({ HOST_ID: 'another-host' });
    await expect(refused).rejects.toThrow(
      /HOST_ID: another host \(.+\) serves this database.+SANDBOX_ADDRESS/,
    );
  });

  it('do each start once, answer alike, and one goes on alone when the other is killed', async () => {
    const [here, there] = [user.at(first.url), user.at(second.url)];
    const goOn = onLongWork(STEPS);
    const watched = await here.started(message('work on'));
    const stream = await there.stream(watched.id);
    await until(() => stream.events.filter(({ event }) => event === 'ObservationEvent').length === 3);

    const tasks = await Promise.all(
      Array.from({ length: STARTS }, (_, index) =>
        (index % 2 === 0 ? here : there).start({
          selected_repository: 'octo/app',
          ...message(shell('echo hello')),
        }),
      ),
    );
    // Neither before the first is done nor after the last.
    await there.once(
      () => Promise.all(tasks.map((id) => there.startTask(id))),
      (all) => Array.isArray(all) && all.filter((task) => jsonText(task, 'status') === 'READY').length >= 3,
    );
    expect(idsOf(jsonList(await here.get('/api/v1/app-conversations/start-tasks/search'), 'items'))).toEqual(
      idsOf(jsonList(await there.get('/api/v1/app-conversations/start-tasks/search'), 'items')),
    );
    expect(idsOf(await here.events(watched.id))).toEqual(idsOf(await there.events(watched.id)));
    await world.kill(first);
    goOn();

    const starts = await Promise.all(tasks.map((id) => there.ready(id)));
    for (const { id, sandboxId } of starts) {
      await there.conversationIn(id, 'finished');
      expect((await there.run(sandboxId, 'cat ~/done.txt')).output).toBe('done\n');
    }
    await until(() =>
      stream.events.some(
        ({ data }) => jsonText(data, 'key') === 'execution_status' && jsonText(data, 'value') === 'finished',
      ),
    );
    expect(stream.ids).toEqual(stream.events.map((_, index) => index + 1));
    expect(stream.events.filter(({ event }) => event === 'ObservationEvent')).toHaveLength(STEPS + 1);
    expect(stream.events.map(({ data }) => text(data, 'id'))).toEqual(idsOf(await there.events(watched.id)));
    stream.close();
    expect(new Set(starts.map(({ sandboxId }) => sandboxId)).size).toBe(STARTS);
    expect(await world.sandboxFolders()).toHaveLength(STARTS + 1);
    expect(await world.count('app_conversations')).toBe(STARTS + 1);
  });
});
