import { Router } from 'express';
import { z } from 'zod';
import type { AgentEvent } from '@slipway/agent-protocol/events.js';
import { messageSchema } from '@slipway/agent-protocol/conversation-schemas.js';
import { contentText } from '@slipway/agent-protocol/conversation-title.js';
import { searchLog } from '../event-log.js';
import { HttpError } from '../http/http-error.js';
import {
  limitSchema,
  pageIdSchema,
  parseRequest,
  requestedIds,
  requireConversationId,
  sortOrderSchema,
  timestampSchema,
} from '../http/request-parsing.js';
import type { Conversation } from './conversation.js';
import type { Conversations } from './conversations.js';

const SUCCESS = { success: true };

const filterSchema = z.object({
  /** Optionally behind a module path (`openhands.sdk.event.MessageEvent`). */
  kind: z.string().optional(),
  source: z.enum(['agent', 'user', 'environment']).optional(),
  /** Part of a message's text, case-insensitive. */
  body: z.string().optional(),
  timestamp__gte: timestampSchema.optional(),
  timestamp__lt: timestampSchema.optional(),
});
const searchSchema = filterSchema.extend({
  page_id: pageIdSchema,
  limit: limitSchema,
  sort_order: sortOrderSchema,
});
const responseSchema = z.object({ accept: z.boolean(), reason: z.string().nullish() });

export function eventRoutes(conversations: Conversations): Router {
  const router = Router({ mergeParams: true });
  const conversationOf = (params: object): Conversation =>
    conversations.get(requireConversationId('id' in params ? String(params.id) : ''));

  router.get('/search', (request, response) => {
    const conversation = conversationOf(request.params);
    const query = parseRequest(searchSchema, 'query', request.query);
    response.json(searchLog(conversation.log, query, eventMatcher(query)));
  });

  router.get('/count', (request, response) => {
    const conversation = conversationOf(request.params);
    const filter = parseRequest(filterSchema, 'query', request.query);
    response.json(conversation.log.entries.filter(eventMatcher(filter)).length);
  });

  router.get('/', (request, response) => {
    const conversation = conversationOf(request.params);
    response.json(requestedIds(request).map((id) => conversation.log.get(id) ?? null));
  });

  router.get('/:eventId', (request, response) => {
    const event = conversationOf(request.params).log.get(request.params.eventId);
    if (event === undefined) {
      throw new HttpError(404, 'Event not found');
    }
    response.json(event);
  });

  router.post('/', async (request, response) => {
    const conversation = conversationOf(request.params);
    await conversation.addMessage(parseRequest(messageSchema, 'body', request.body));
    response.json(SUCCESS);
  });

  router.post('/respond_to_confirmation', async (request, response) => {
    const conversation = conversationOf(request.params);
    const { accept, reason } = parseRequest(responseSchema, 'body', request.body);
    await conversation.respond(accept, accept ? null : (reason ?? 'User rejected the action.'));
    response.json(SUCCESS);
  });

  return router;
}

function eventMatcher(filter: z.infer<typeof filterSchema>): (event: AgentEvent) => boolean {
  const kind = filter.kind?.split('.').at(-1);
  const body = filter.body?.toLowerCase();
  return (event) =>
    (kind === undefined || event.kind === kind) &&
    (filter.source === undefined || event.source === filter.source) &&
    (filter.timestamp__gte === undefined || event.timestamp >= filter.timestamp__gte) &&
    (filter.timestamp__lt === undefined || event.timestamp < filter.timestamp__lt) &&
    (body === undefined || messageText(event).toLowerCase().includes(body));
}

function messageText(event: AgentEvent): string {
  return event.kind === 'MessageEvent' ? contentText(event.llm_message.content) : '';
}
