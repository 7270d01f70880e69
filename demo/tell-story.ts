import type { Demo } from './start-demo.js';
import type { Storyteller } from './storyteller.js';
import { taskTable } from './task-table.js';

const TASKS_PATH = '/api/user/suggested-tasks';
const TOKENS_PATH = '/api/add-git-providers';
const asJson = (body: unknown) => [JSON.stringify(body)];

/** The main job from the first token on, with a provider that fails on the way. */
export async function tellStory(demo: Demo, teller: Storyteller): Promise<void> {
  const { github, gitlab, bitbucket } = demo.worlds;
  teller.say(
    'Nadia stores a token for each of her three git hosts. Every token is tried on its host before it is kept.',
  );
  teller.introduceKey();
  await teller.request(
    {
      method: 'POST',
      path: TOKENS_PATH,
      body: {
        provider_tokens: {
          github: { token: github.token },
          gitlab: { token: gitlab.token },
          bitbucket: { token: bitbucket.token },
        },
      },
    },
    asJson,
  );

  teller.say('What should she (or an agent) do next? All three hosts are asked at once.');
  await teller.request({ method: 'GET', path: TASKS_PATH }, taskTable);

  teller.say('Asked again, the answer is at hand. Here only the most urgent kinds:');
  await teller.request(
    { method: 'GET', path: `${TASKS_PATH}?task_types=MERGE_CONFLICTS,FAILING_CHECKS&limit=3` },
    taskTable,
  );

  teller.say('She replaces her GitLab token…');
  gitlab.token = 'glpat-demo-newer-token-of-nadia';
  await teller.request(
    { method: 'POST', path: TOKENS_PATH, body: { provider_tokens: { gitlab: { token: gitlab.token } } } },
    asJson,
  );

  teller.say(
    '…and just now GitLab is over its limit (429). The others still answer, and the header says why.',
  );
  demo.gitlab.injectFault({ kind: 'status', status: 429, headers: { 'retry-after': '41' } });
  await teller.request({ method: 'GET', path: TASKS_PATH }, taskTable);
  demo.gitlab.clearFaults();
}
