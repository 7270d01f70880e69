import { Body, Controller, Param, Post } from '@nestjs/common';
import { ApiBody, ApiTags } from '@nestjs/swagger';
import type { BodyKind } from '@slipway/common/requests/json-body.js';
import { ApiRoute, badInput, type DocumentedProblem, thrown } from '@slipway/api/openapi/api-route.js';
import { succeeded, SuccessDto } from '@slipway/api/openapi/responses.js';
import { JsonBodyBounds, type JsonBodyOptions } from '@slipway/api/requests/json-body.interceptor.js';
import { ConversationIdDto, EVENT_EXAMPLE } from '../events/events.dto.js';
import { unknownToSandbox } from '../events/events.service.js';
import {
  CurrentSandbox,
  noSandboxKey,
  SandboxAuthenticated,
  type SandboxKeyHolder,
} from '../sandboxes/sandbox-key.guard.js';
import { AgentServerWebhooksService } from './agent-server-webhooks.service.js';

const PROBLEMS: DocumentedProblem[] = [
  thrown(noSandboxKey(), 'No key of a sandbox'),
  thrown(unknownToSandbox(), 'No id of a conversation'),
  { status: 413, detail: 'The request body may have at most 32 MiB.' },
];
/** Bounds the values of all events of a request together. */
const MAX_VALUES = 1_000_000;
const HINT =
  "For agent servers, with their sandbox's key. It makes the service read the agent server's log at once instead of a moment later; what is sent is not stored. A conversation that the service does not know, because a client began it at the agent server itself, becomes one of the sandbox's owner.";

/** Agent servers send several events at once, with images and the output of commands in them. */
const EVENTS: Partial<JsonBodyOptions> = { bytes: 32 * 1024 * 1024, values: MAX_VALUES, skim: true };
/** A conversation is sent with its settings, its skills and the statistics of each model call. */
const CONVERSATION: Partial<JsonBodyOptions> = { bytes: 4 * 1024 * 1024, anyText: true };

@ApiTags('Webhooks')
@SandboxAuthenticated()
@Controller('api/v1/webhooks')
export class AgentServerWebhooksController {
  constructor(private readonly webhooks: AgentServerWebhooksService) {}

  @Post('conversations')
  @JsonBodyBounds(CONVERSATION)
  @ApiBody({
    schema: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string', format: 'uuid', description: 'Id of the conversation.' } },
      example: { id: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f' },
    },
  })
  @ApiRoute('on_conversation_update', 'A conversation has changed', {
    description: HINT,
    answer: { type: SuccessDto, description: 'Understood' },
    problems: PROBLEMS,
    invalid: badInput('body.id', 'Expected the id of a conversation.', 'missing'),
  })
  async conversation(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Body() info: unknown,
  ): Promise<SuccessDto> {
    return succeeded(this.webhooks.conversationChanged(sandbox, info));
  }

  @Post('events/:id')
  @JsonBodyBounds(EVENTS)
  @ApiBody({
    schema: {
      type: 'array',
      maxItems: MAX_VALUES,
      items: { type: 'object', additionalProperties: true, maxProperties: MAX_VALUES },
      example: [EVENT_EXAMPLE],
    },
  })
  @ApiRoute('on_event', 'A conversation has new events', {
    description: HINT,
    answer: { type: SuccessDto, description: 'Understood' },
    problems: PROBLEMS,
    invalid: badInput('body', 'Expected a list of events.', 'list_type'),
  })
  async events(
    @CurrentSandbox() sandbox: SandboxKeyHolder,
    @Param() { id }: ConversationIdDto,
    @Body() events: BodyKind | null | undefined,
  ): Promise<SuccessDto> {
    return succeeded(this.webhooks.eventsArrived(sandbox, id, events));
  }
}
