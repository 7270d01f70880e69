import { Router } from 'express';
import { z } from 'zod';
import { type ConversationInfo, CONVERSATION_STATUSES } from '@slipway/agent-protocol/conversation-api.js';
import {
  confirmationPolicySchema,
  conversationIdSchema,
  credentialsSchema,
  type CredentialsUpdate,
  forkSchema,
  messageSchema,
  secretsSchema,
  securityAnalyzerSchema,
  startSchema,
  switchLlmSchema,
  tagsSchema,
  toConversationId,
} from '@slipway/agent-protocol/conversation-schemas.js';
import { contentText, conversationTitle, type AgentEvent } from '@slipway/agent-protocol/events.js';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import type { LlmProfiles, ProfileModel } from '../client-settings/client-settings.js';
import { finalAnswer } from '../engine/agent-events.js';
import { searchLog } from '../event-log.js';
import { existing, InvalidRequestError, unknownPage } from '../http/http-error.js';
import {
  isInPeriod,
  limitSchema,
  listSchema,
  logPage,
  pageIdSchema,
  parseRequest,
  logPeriod,
  requestedIds,
  requireConversationId,
} from '../http/request-parsing.js';
import { findPlugin } from '../skills/agent-context.js';
import type { SkillReader } from '../skills/skill-reader.js';
import type { Conversation } from './conversation.js';
import type { Conversations } from './conversations.js';
import { parametersOf } from './credentials.js';

const MAX_IDS = 100;
const SUCCESS = { success: true };

const statusSchema = z.enum(CONVERSATION_STATUSES).optional();
const countSchema = z.object({ status: statusSchema });
const searchSchema = z.object({
  status: statusSchema,
  page_id: pageIdSchema,
  limit: limitSchema,
  sort_order: z
    .enum(['CREATED_AT', 'UPDATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT_DESC'])
    .default('CREATED_AT_DESC'),
});
const idsSchema = z.object({ ids: listSchema.pipe(z.array(conversationIdSchema).max(MAX_IDS)) });
const descriptionSchema = z.object({
  title: z.string().trim().min(1).max(200).optional(),
  tags: tagsSchema.optional(),
});
const navigationSchema = z.object({ event_id: z.string().nullish() });
const policySchema = z.object({ policy: confirmationPolicySchema });
const analyzerSchema = z.object({ security_analyzer: securityAnalyzerSchema });
const secretsUpdateSchema = z.object({ secrets: secretsSchema });
const modelSchema = z.object({ model: z.string().trim().min(1).max(200) });
const pluginSchema = z.object({ plugin_ref: z.string().max(500) });
const profileSchema = z.object({ profile_name: z.string() });
const goalSchema = z.object({
  objective: z.string().trim().min(1).max(20_000),
  max_iterations: z.number().int().min(1).max(100).default(10),
});
const questionSchema = z.object({ question: z.string().min(1) });
const titleRequestSchema = z
  .object({ max_length: z.number().int().min(1).max(200).default(50) })
  .prefault({});

const filterSchema = z.object({
  /** Optionally behind a module path (`openhands.sdk.event.MessageEvent`). */
  kind: z.string().optional(),
  source: z.enum(['agent', 'user', 'environment']).optional(),
  /** Part of a message's text, case-insensitive. */
  body: z.string().optional(),
  ...logPeriod,
});
const eventSearchSchema = filterSchema.extend(logPage);
const confirmationSchema = z.object({ accept: z.boolean(), reason: z.string().nullish() });

interface ConversationRoutesOptions {
  conversations: Conversations;
  profiles: LlmProfiles;
  skills: SkillReader;
}

export function conversationRoutes({ conversations, profiles, skills }: ConversationRoutesOptions): Router {
  const router = Router();
  const conversationOf = (id: string): Conversation => conversations.get(requireConversationId(id));

  router.post('/', async (request, response) => {
    const body = parseRequest(startSchema, 'body', request.body);
    await checkResultSchema(body.slipway.result_schema ?? null);
    const { conversation, created } = await conversations.start(body);
    response.status(created ? 201 : 200).json(conversation.info());
  });

  router.get('/', (request, response) => {
    const { ids } = parseRequest(idsSchema, 'query', request.query);
    response.json(ids.map((id) => conversations.find(id)?.info() ?? null));
  });

  router.get('/search', (request, response) => {
    const query = parseRequest(searchSchema, 'query', request.query);
    const infos = withStatus(conversations, query.status).toSorted(byOrder(query.sort_order));
    const pageId = query.page_id === undefined ? null : toConversationId(query.page_id);
    const start = query.page_id === undefined ? 0 : infos.findIndex(({ id }) => id === pageId);
    if (start === -1) {
      throw unknownPage();
    }
    response.json({
      items: infos.slice(start, start + query.limit),
      next_page_id: infos[start + query.limit]?.id ?? null,
    });
  });

  router.get('/count', (request, response) => {
    response.json(withStatus(conversations, parseRequest(countSchema, 'query', request.query).status).length);
  });

  router.get('/:id', (request, response) => {
    response.json(conversationOf(request.params.id).info());
  });

  router.patch('/:id', async (request, response) => {
    const conversation = conversationOf(request.params.id);
    const { title, tags } = parseRequest(descriptionSchema, 'body', request.body);
    await conversation.state.change({ ...(title !== undefined && { title }), ...(tags && { tags }) });
    response.json(SUCCESS);
  });

  router.delete('/:id', async (request, response) => {
    await conversations.remove(requireConversationId(request.params.id));
    response.json(SUCCESS);
  });

  /** Does what a body asks for; the answer is what comes of it, or that it is done. */
  const action = <T>(
    name: string,
    schema: z.ZodType<T>,
    act: (conversation: Conversation, body: T) => unknown,
  ): void => {
    router.post(`/:id/${name}`, async (request, response) => {
      const conversation = conversationOf(request.params.id);
      response.json((await act(conversation, parseRequest(schema, 'body', request.body))) ?? SUCCESS);
    });
  };
  const view = <T>(
    name: string,
    schema: z.ZodType<T>,
    show: (conversation: Conversation, query: T) => unknown,
  ): void => {
    router.get(`/:id/${name}`, (request, response) => {
      const conversation = conversationOf(request.params.id);
      response.json(show(conversation, parseRequest(schema, 'query', request.query)));
    });
  };
  const noBody = z.unknown();
  action('run', noBody, (conversation) => conversation.run());
  action('pause', noBody, (conversation) => conversation.pause(false));
  action('interrupt', noBody, (conversation) => conversation.pause(true));
  action('goal', goalSchema, ({ goal }, body) => goal.start(body.objective, body.max_iterations));
  action('goal/stop', noBody, ({ goal }) => goal.interrupt());
  action('goal/resume', noBody, ({ goal }) => goal.resume());
  action('secrets', secretsUpdateSchema, (conversation, secrets) => conversation.updateCredentials(secrets));
  action('credentials', credentialsSchema, (conversation, given) => conversation.updateCredentials(given));
  action('switch_llm', switchLlmSchema, (conversation, { llm }) =>
    conversation.updateCredentials(switchTo(llm)),
  );
  action('switch_profile', profileSchema, (conversation, { profile_name: name }) =>
    conversation.updateCredentials(switchTo(profiles.get(name))),
  );
  action('load_plugin', pluginSchema, async ({ state }, { plugin_ref: reference }) => {
    const { agent, workingDir } = state.record;
    await state.addPlugin(await findPlugin(agent, workingDir, reference, skills));
  });
  action('confirmation_policy', policySchema, ({ state }, { policy: confirmationPolicy }) =>
    state.change({ confirmationPolicy }),
  );
  action('security_analyzer', analyzerSchema, ({ state }, { security_analyzer: securityAnalyzer }) =>
    state.change({ securityAnalyzer }),
  );
  action('switch_acp_model', modelSchema, (conversation, { model }) => conversation.switchAcpModel(model));
  action('generate_title', titleRequestSchema, ({ log }, { max_length: maxLength }) => ({
    title: conversationTitle(log.entries, maxLength) ?? 'New conversation',
  }));
  action('ask_agent', questionSchema, async (conversation, { question }) => ({
    response: await conversation.ask(question),
  }));
  action('condense', noBody, async (conversation) => ({ success: await conversation.condense() }));
  action('navigate', navigationSchema, async (conversation, { event_id: eventId = null }) => {
    await conversation.navigate(eventId);
    return conversation.info();
  });
  action('events', messageSchema, (conversation, message) => conversation.addMessage(message));
  action('events/respond_to_confirmation', confirmationSchema, (conversation, { accept, reason }) =>
    conversation.respond(accept ? null : (reason ?? 'User rejected the action.')),
  );
  view('agent_final_response', z.unknown(), ({ state }) => ({ response: finalAnswer(state.events()) }));
  view('events/search', eventSearchSchema, ({ log }, query) => searchLog(log, query, eventMatcher(query)));
  view('events/count', filterSchema, ({ log }, filter) => log.entries.filter(eventMatcher(filter)).length);

  router.post('/:id/fork', async (request, response) => {
    const source = requireConversationId(request.params.id);
    const fork = await conversations.fork(source, parseRequest(forkSchema, 'body', request.body));
    response.status(201).json(fork.info());
  });

  router.get('/:id/events', (request, response) => {
    const conversation = conversationOf(request.params.id);
    response.json(requestedIds(request).map((id) => conversation.log.get(id) ?? null));
  });

  router.get('/:id/events/:eventId', (request, response) => {
    const { log } = conversationOf(request.params.id);
    response.json(existing(log.get(request.params.eventId), 'Event not found'));
  });

  return router;
}

function switchTo(llm: ProfileModel): CredentialsUpdate {
  return {
    llm_model: llm.model,
    llm_base_url: llm.base_url ?? null,
    llm_api_key: llm.api_key ?? null,
    llm_parameters: parametersOf(llm),
  };
}

function withStatus(
  conversations: Conversations,
  status: (typeof CONVERSATION_STATUSES)[number] | undefined,
): ConversationInfo[] {
  return conversations
    .all()
    .filter(({ record }) => status === undefined || record.status === status)
    .map((conversation) => conversation.info());
}

function byOrder(
  order: z.infer<typeof searchSchema>['sort_order'],
): (a: ConversationInfo, b: ConversationInfo) => number {
  const member = order.startsWith('CREATED_AT') ? 'created_at' : 'updated_at';
  const sign = order.endsWith('_DESC') ? -1 : 1;
  return (a, b) => sign * (compare(a[member], b[member]) || compare(a.id, b.id));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function eventMatcher(filter: z.infer<typeof filterSchema>): (event: AgentEvent) => boolean {
  const kind = filter.kind?.split('.').at(-1);
  const body = filter.body?.toLowerCase();
  return (event) =>
    (kind === undefined || event.kind === kind) &&
    (filter.source === undefined || event.source === filter.source) &&
    isInPeriod(event, filter) &&
    (body === undefined || messageText(event).toLowerCase().includes(body));
}

function messageText(event: AgentEvent): string {
  return event.kind === 'MessageEvent' ? contentText(event.llm_message.content) : '';
}

/** @throws InvalidRequestError for a schema that cannot be used to check results */
async function checkResultSchema(schema: Record<string, unknown> | null): Promise<void> {
  if (schema === null) {
    return;
  }
  // Few conversations have one, and the validator takes a while to load.
  const { jsonSchemaCheck } = await import('../tools/finish.tool.js');
  try {
    jsonSchemaCheck(schema);
  } catch (error) {
    throw new InvalidRequestError({
      type: 'value_error',
      loc: ['body', 'slipway', 'result_schema'],
      msg: `Input should be a JSON Schema: ${errorMessage(error)}`,
    });
  }
}
