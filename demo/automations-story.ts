import { jsonAt, jsonList, jsonNumber, jsonText } from '@slipway/common/json-access.js';
import { followedOf } from '../test/fakes/fake-followed.js';
import { deliver, type GithubDelivery, issueLabeledDelivery } from '../test/fakes/fake-github.webhooks.js';
import { until } from '../test/support/until.js';
import { LOOP_PROMPT } from './automations-model.js';
import { LOOP_ISSUE, LOOP_REPOSITORY, openedPullRequest } from './automations-world.js';
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
const REPOSITORY = {
  repos: [{ url: LOOP_REPOSITORY, provider: 'github' }],
  follow: { until: 'green', max_rounds: 5 },
  // A script has no price, so a limit in dollars could not be enforced, which each run would say.
  max_budget_per_run: null,
  max_budget_per_month: null,
};
const BY_LABEL = {
  name: 'Fix what has the label',
  prompt: 'Fix issue {{ event.issue.number }}: {{ event.issue.title }}',
  trigger: { type: 'event', source: 'github', on: 'issues.labeled', filter: "label.name == 'agent'" },
  ...REPOSITORY,
};
const NIGHTLY = {
  name: 'Try all labels every night',
  prompt: LOOP_PROMPT,
  trigger: { type: 'cron', schedule: '0 2 * * *', timezone: 'Europe/Berlin' },
  ...REPOSITORY,
};

/** Tells how an automation is made that one may start at once; returns its id. */
export async function tellAutomation(demo: Demo, teller: Storyteller): Promise<string> {
  const hook = await tellWebhook(teller);
  demo.hosts.github.listener = (delivery) => deliver(hook, delivery);
  teller.say(
    'An agent shall try all labels at night, and follow its pull request until that is green. Run now starts it at once.',
  );
  return await tellMaking(teller, NIGHTLY);
}

/**
 * Tells how a label becomes a green pull request, with a check that fails and a reviewer who asks for more. Returns the
 * id of the conversation, and that of its automation.
 */
export async function tellAutomations(
  demo: Demo,
  teller: Storyteller,
): Promise<{ id: string; automationId: string }> {
  const { github } = demo.worlds;
  teller.say('Nadia stores her GitHub token, and a model (here a script behind an OpenAI-compatible API).');
  teller.introduceKey();
  const tokens = { provider_tokens: { github: { token: github.token } } };
  await teller.request({ method: 'POST', path: TOKENS_PATH, body: tokens }, asJson);
  await tellModel(demo, teller);
  const hook = await tellWebhook(teller);
  const send = ({ event, payload }: GithubDelivery) => {
    const said = [event, jsonText(payload, 'action'), jsonText(payload, 'check_run', 'conclusion')];
    return teller.event(said.filter(Boolean).join(' '), () => deliver(hook, { event, payload }));
  };
  demo.hosts.github.listener = send;
  teller.say('An agent shall work on every issue with the label "agent", until its pull request is green.');
  const automationId = await tellMaking(teller, BY_LABEL);

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
  teller.say(
    `From the event to the start it took ${ms.toFixed(0)} ms. The agent opens a pull request, whose check really runs:`,
  );
  const events = `/api/v1/conversation/${id}/events/stream`;
  let seen = await teller.stream(events, wholeLine, hasStopped);
  const untilFollow = (isThere: (follow: unknown) => boolean) =>
    teller.follow(`${CONVERSATIONS}?ids=${id}`, followLine, (body) => isThere(followIn(body)));

  teller.say('The check has failed. The conversation goes on by itself:');
  await untilFollow((follow) => (jsonNumber(follow, 'round') ?? 0) >= 1);
  seen = await teller.stream(events, wholeLine, hasStopped, seen);

  teller.say('The check passes for the new commit. But Tom has read the change, and asks for more:');
  await untilFollow((follow) => (jsonNumber(follow, 'round') ?? 0) >= 2);
  await teller.stream(events, wholeLine, hasStopped, seen);

  const { comments } = followedOf(openedPullRequest(github));
  const answer = () => comments.find(({ author }) => author === github.user.login);
  await until(() => answer() !== undefined);
  teller.say(`Tom resolves his thread, where he reads: ${answer()?.body.replaceAll('\n', ' ')}`);
  await untilFollow((follow) => jsonText(follow, 'state') === 'reached');
  return { id, automationId };
}

async function tellWebhook(teller: Storyteller): Promise<{ url: string; secret: string }> {
  teller.say(
    'GitHub shall send its events. Address and secret go into the settings of the repository there.',
  );
  const hook = await teller.request(
    { method: 'POST', path: `${AUTOMATIONS}/webhooks`, body: { name: 'Quayside', source: 'github' } },
    (made) => [jsonText(made, 'webhook_url') ?? ''],
  );
  return { url: jsonText(hook, 'webhook_url') ?? '', secret: jsonText(hook, 'webhook_secret') ?? '' };
}

async function tellMaking(teller: Storyteller, automation: object): Promise<string> {
  const made = await teller.request(
    { method: 'POST', path: `${AUTOMATIONS}/preset/prompt`, body: automation },
    (body) => [`automation ${jsonText(body, 'id')}: ${jsonText(body, 'state')}`],
  );
  return jsonText(made, 'id') ?? '';
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

function followIn(body: unknown): unknown {
  return jsonAt(jsonList(body)[0], 'follow');
}

function followLine(body: unknown): string {
  const follow = followIn(body);
  const said = `${jsonText(follow, 'state')}, round ${jsonNumber(follow, 'round')}`;
  return [said, jsonText(follow, 'reason')].filter(Boolean).join(': ');
}
