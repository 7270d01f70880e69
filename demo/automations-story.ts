import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { addComment, followedOf } from '../test/fakes/fake-followed.js';
import {
  checkRunDelivery,
  commentDelivery,
  deliver,
  type GithubDelivery,
  issueLabeledDelivery,
} from '../test/fakes/fake-github.webhooks.js';
import { until } from '../test/support/until.js';
import {
  addIssue,
  beginCheck,
  LOOP_ISSUE,
  LOOP_REPOSITORY,
  openedPullRequest,
  runCheck,
} from './automations-world.js';
import type { Demo } from './start-demo.js';
import {
  asJson,
  CONVERSATIONS,
  eventLine,
  firstItem,
  hasStopped,
  tellModel,
  textOf,
  TOKENS_PATH,
} from './story.js';
import type { ServerSentEvent, Storyteller } from './storyteller.js';

const AUTOMATIONS = '/api/automation/v1';
const AUTOMATION = {
  name: 'Fix what has the label',
  prompt: 'Fix issue {{ event.issue.number }}: {{ event.issue.title }}',
  repos: [{ url: LOOP_REPOSITORY, provider: 'github' }],
  trigger: { type: 'event', source: 'github', on: 'issues.labeled', filter: "label.name == 'agent'" },
  follow: { until: 'green', max_rounds: 5 },
};

/**
 * Tells how a label becomes a green pull request, with a check that fails and a reviewer who asks for more. Returns the
 * id of the conversation, and that of its automation.
 */
export async function tellAutomations(
  demo: Demo,
  teller: Storyteller,
): Promise<{ id: string; automationId: string }> {
  const { github } = demo.worlds;
  await addIssue(demo);
  teller.say('Nadia stores her GitHub token, and a model (here a script behind an OpenAI-compatible API).');
  teller.introduceKey();
  const tokens = { provider_tokens: { github: { token: github.token } } };
  await teller.request({ method: 'POST', path: TOKENS_PATH, body: tokens }, asJson);
  await tellModel(demo, teller);
  teller.say(
    'GitHub shall send its events. Address and secret go into the settings of the repository there.',
  );
  const hook = await teller.request(
    { method: 'POST', path: `${AUTOMATIONS}/webhooks`, body: { name: 'Labels', source: 'github' } },
    (made) => [jsonText(made, 'webhook_url') ?? ''],
  );
  teller.say('An agent shall work on every issue with the label "agent", until its pull request is green.');
  const automation = await teller.request(
    { method: 'POST', path: `${AUTOMATIONS}/preset/prompt`, body: AUTOMATION },
    (made) => [`automation ${jsonText(made, 'id')}: ${jsonText(made, 'state')}`],
  );
  const send = async ({ event, payload }: GithubDelivery) => {
    const said = [event, jsonText(payload, 'action'), jsonText(payload, 'check_run', 'conclusion')];
    const webhook = {
      url: jsonText(hook, 'webhook_url') ?? '',
      secret: jsonText(hook, 'webhook_secret') ?? '',
    };
    return teller.event(said.filter(Boolean).join(' '), () => deliver(webhook, { event, payload }));
  };

  teller.say(`She puts the label on issue ${LOOP_ISSUE.number}, "${LOOP_ISSUE.title}".`);
  const labelled = await send(issueLabeledDelivery(github, LOOP_ISSUE, 'agent'));
  const started = await teller.follow(
    `${CONVERSATIONS}/start-tasks/search?limit=1`,
    startStatus,
    (page) => ['READY', 'ERROR'].includes(startStatus(page)),
    labelled,
  );
  const [task] = jsonList(started, 'items');
  const id = jsonText(task, 'app_conversation_id') ?? '';
  const ms = Date.parse(jsonText(task, 'created_at') ?? '') - performance.timeOrigin - labelled;
  teller.say(`From the event to the start it took ${ms.toFixed(0)} ms. The agent opens a pull request:`);
  const events = `/api/v1/conversation/${id}/events/stream`;
  let seen = await teller.stream(events, wholeLine, hasStopped);
  const change = openedPullRequest(github);
  const untilFollow = (line: string, sentAt: number) =>
    teller.follow(
      `${CONVERSATIONS}?ids=${id}`,
      followLine,
      (body) => followLine(body).startsWith(line),
      sentAt,
    );

  teller.say('The check of the pull request runs and fails. The conversation goes on by itself:');
  const failed = await runCheck(demo, await beginCheck(demo, change));
  await untilFollow('working, round 1', await send(checkRunDelivery(change, failed)));
  seen = await teller.stream(events, wholeLine, hasStopped, seen);

  teller.say('The check runs for the new commit. Meanwhile Tom reads the change, and asks for more:');
  const check = await beginCheck(demo, change);
  const text = 'And without a postcode? An empty line is no label.';
  const asked = addComment(change, 'tom', text, { path: 'label.sh', line: 2 });
  await untilFollow('working, round 2', await send(commentDelivery(change, asked)));
  await send(checkRunDelivery(change, await runCheck(demo, check)));
  await teller.stream(events, wholeLine, hasStopped, seen);

  const answer = () =>
    followedOf(change).comments.find((other) => other.root === asked.id && other !== asked);
  await until(() => answer() !== undefined);
  teller.say(`Tom resolves his thread, where he reads: ${answer()?.body.replaceAll('\n', ' ')}`);
  asked.resolved = true;
  const passed = await runCheck(demo, await beginCheck(demo, change));
  await untilFollow('reached', await send(checkRunDelivery(change, passed)));
  return { id, automationId: jsonText(automation, 'id') ?? '' };
}

function startStatus(page: unknown): string {
  return firstItem(jsonAt(page, 'items'), 'status');
}

/** What the agent is told, in full, and {@link eventLine} for all else. */
function wholeLine(event: ServerSentEvent): string | null {
  return event.event === 'MessageEvent' && jsonText(event.data, 'source') === 'user'
    ? `user      ${textOf(jsonList(event.data, 'llm_message', 'content')).replaceAll('\n', '\n                 ')}`
    : eventLine(event);
}

function followLine(body: unknown): string {
  const follow = jsonAt(jsonList(body)[0], 'follow');
  const said = `${jsonText(follow, 'state')}, round ${jsonNumber(follow, 'round')}`;
  return [said, jsonText(follow, 'reason')].filter(Boolean).join(': ');
}
