import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { call } from '../../../packages/agent-server/test/fakes/scripted-llm.answers.js';
import type { ApiClient } from './support/api-client.js';
import { JourneyWorld } from './support/journey-world.js';
import { message, onMessage } from './support/script.js';

jest.setTimeout(180_000);

const REPOSITORY = 'octo/limits';
const COMMIT = 'git checkout -qb fix; echo b > b.txt; git add .; git commit -qm b; git push -q origin fix';

describe('an agent without the git token of its user', () => {
  let world: JourneyWorld;
  let user: ApiClient;
  let tools: readonly string[] = [];

  beforeAll(async () => {
    world = await JourneyWorld.open();
    await world.start();
    user = await world.createUser();
    await world.giveToken(user);
    await world.git.commit(REPOSITORY, 'main', { 'a.txt': 'a' });
    onMessage('bring the fix', (results, request) => {
      tools = request.tools;
      const steps = [
        call('terminal', { command: COMMIT }),
        call('git_remote', { operation: 'fetch' }),
        call('git_remote', { operation: 'push', branch: 'fix' }),
      ];
      return steps[results.length] ?? call('finish', { message: results.join('\n') });
    });
  });

  afterAll(async () => {
    await world.close();
  });

  async function bring(limits: object): Promise<string> {
    const start = { selected_repository: REPOSITORY, git_provider: 'github', ...message('bring the fix') };
    const { id } = await user.started({ ...start, ...limits });
    await user.conversationIn(id, 'finished', 'error');
    return JSON.stringify(await user.eventsOfKind(id, 'ObservationEvent'));
  }

  it('only fetches with git: read', async () => {
    const seen = await bring({ git: 'read' });
    expect(seen).toContain('terminal prompts disabled');
    expect(seen).toContain('git fetch succeeded');
    expect(seen).toContain('git push failed');
    expect(tools).not.toContain('create_pull_request');
    await expect(world.git.tip(REPOSITORY, 'fix')).rejects.toThrow('Command failed');
  });

  it('has nothing but its clone with git: none', async () => {
    expect(await bring({ git: 'none' })).toContain('terminal prompts disabled');
    expect(tools).not.toContain('git_remote');
    expect(tools).not.toContain('create_pull_request');
  });

  it('pushes by its own tool', async () => {
    const seen = await bring({ secret_names: [] });
    expect(seen).toContain('terminal prompts disabled');
    expect(seen).toContain('git push succeeded');
    expect(tools).toContain('create_pull_request');
    expect(await world.git.show(REPOSITORY, 'fix', '%s')).toBe('b');
  });
});
