import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import {
  ANY_OBJECT,
  OrNull,
  Shown,
  ShownOrNull,
  Time,
  TimeOrNull,
  toWire,
} from '@slipway/api/openapi/responses.js';
import { PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { SchemaRules } from '@slipway/api/openapi/schema-rules.js';
import { customRule, must } from '@slipway/api/validation/field.js';
import { Choice, Flag, Identifier, Text, TextList } from '@slipway/api/validation/field-decorators.js';
import {
  DELIVERY_STATUSES,
  type DeliveryStatus,
  type WebhookDelivery,
} from './webhook-delivery.repository.js';
import type { WebhookEndpoint } from './webhook-endpoint.repository.js';
import { EVERY_EVENT, WEBHOOK_EVENT_TYPES } from './webhook-event.js';
import type { EndpointWithSecret } from './webhook-endpoints.service.js';
import { WEBHOOK_SECRET_FORM, webhookSecretBytes } from '@slipway/common/webhook-signature.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';

const ENDPOINT_ID = '5d1f9a1e-0f5b-4a57-8d0e-6c1b2a3f4e5d';
const DELIVERY_ID = 'b3a0f7c2-7f0d-4a2b-9e43-2f1d0c9b8a76';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=';
const URL_EXAMPLE = 'https://ci.example.com/slipway';

const EVENTS_EXPECTED = `Expected a list of: ${[EVERY_EVENT, ...WEBHOOK_EVENT_TYPES].join(', ')}.`;

function EventTypes(): PropertyDecorator {
  const known: ReadonlySet<unknown> = new Set([EVERY_EVENT, ...WEBHOOK_EVENT_TYPES]);
  const areGood = (value: unknown): boolean =>
    !Array.isArray(value) ||
    (value.length > 0 && value.every((type) => known.has(type)) && new Set(value).size === value.length);
  return applyDecorators(
    TextList(
      `Types of events to send, without repetition; \`${EVERY_EVENT}\`: all of them, later ones included.`,
      {
        example: ['conversation.finished', 'conversation.error'],
        default: [EVERY_EVENT],
        form: { minItems: 1, uniqueItems: true, items: { $ref: '#/$defs/WebhookEventType' } },
      },
    ),
    customRule('eventTypes', must(areGood, 'enum', EVENTS_EXPECTED)),
  );
}

@SchemaRules({ $defs: { WebhookEventType: { type: 'string', enum: [EVERY_EVENT, ...WEBHOOK_EVENT_TYPES] } } })
class EndpointFieldsDto {
  @Text('For people.', { nullable: true, example: 'CI', maxLength: 200 }) description?: string | null;
  @EventTypes() events?: string[];
  @Flag('Whether anything is sent.', { default: true, example: true }) enabled?: boolean;

  @Text('Signing secret; by default a random one. It is shown once, and never again.', {
    secret: true,
    example: SECRET,
    form: WEBHOOK_SECRET_FORM,
    rule: (secret) =>
      webhookSecretBytes(secret) === null ? 'Expected whsec_ and 24 to 64 bytes in base64.' : null,
  })
  secret?: string;
}

function EndpointUrl(description: string, required = false): PropertyDecorator {
  return Text(description, {
    required,
    example: URL_EXAMPLE,
    form: { format: 'uri' },
    maxLength: 2_000,
    rule: (url) => addressProblem(url, ['http', 'https']),
  });
}

@NoOtherMembers()
export class CreateWebhookEndpointDto extends EndpointFieldsDto {
  @EndpointUrl(
    'Where events are sent: an https address of a public server, or one that the operator allows.',
    true,
  )
  url: string;
}

@NoOtherMembers()
export class UpdateWebhookEndpointDto extends EndpointFieldsDto {
  @EndpointUrl('Where events are sent from now on.') url?: string;
}

export class WebhookEndpointIdDto {
  @Identifier('Id of the endpoint.', { required: true, example: ENDPOINT_ID }) id: string;
}

export class WebhookDeliveryIdDto extends WebhookEndpointIdDto {
  @Identifier('Id of the delivery.', { required: true, example: DELIVERY_ID }) delivery_id: string;
}

export class SearchWebhookDeliveriesQueryDto extends PageQuery('Deliveries on a page.', 50) {
  @Choice('Only those with this status.', { values: DELIVERY_STATUSES, example: 'failed' })
  status?: DeliveryStatus;
}

export class WebhookEndpointDto {
  @ApiProperty({ format: 'uuid', example: ENDPOINT_ID }) id: string;
  @ApiProperty({ example: URL_EXAMPLE }) url: string;
  @OrNull('CI') description: string | null;
  @ApiProperty({ type: [String], example: ['conversation.finished', 'conversation.error'] }) events: string[];
  @ApiProperty({ example: true }) enabled: boolean;

  @ShownOrNull('Why the service has disabled the endpoint; null when it has not.', null)
  disabled_reason: string | null;

  @Time() created_at: Date;
  @Time() updated_at: Date;
}

/** The only responses that hold the secret. */
export class WebhookEndpointWithSecretDto extends WebhookEndpointDto {
  @ApiProperty({ description: 'Shown here and never again.', example: SECRET }) secret: string;
}

export class WebhookDeliveryDto {
  @Shown('The same in all attempts: header `webhook-id`, and `id` of the body.', DELIVERY_ID, {
    format: 'uuid',
  })
  id: string;

  @ApiProperty({ example: 'conversation.finished' }) event_type: string;

  @Shown(
    '`data` of the body.',
    { conversation_id: '8d7b2f7e1c0a4f3f9b6f2b0c5d4e3a21', execution_status: 'finished' },
    ANY_OBJECT,
  )
  data: Record<string, unknown>;

  @ApiProperty({ enum: DELIVERY_STATUSES, example: 'delivered' }) status: DeliveryStatus;
  @ApiProperty({ type: 'integer', description: 'Attempts so far.', example: 1 }) attempts: number;
  @Time() created_at: Date;
  @TimeOrNull(null) next_attempt_at: Date | null;
  @TimeOrNull('2026-11-21T09:30:00.200Z') last_attempt_at: Date | null;

  @Shown('HTTP status of the last attempt; null when there was no response.', 204, {
    type: 'integer',
    nullable: true,
  })
  last_response_status: number | null;

  @ShownOrNull('Why the last attempt failed.', null) last_error: string | null;
  @Shown('Milliseconds.', 84, { type: 'integer', nullable: true }) last_duration_ms: number | null;

  @Shown('Older deliveries that had not arrived, and were removed when this one was added.', 0, {
    type: 'integer',
  })
  dropped: number;
}

export class WebhookDeliveryPageDto extends PageOf(WebhookDeliveryDto) {}

export function toWebhookEndpointDto(endpoint: WebhookEndpoint): WebhookEndpointDto {
  const state = ['enabled', 'disabledReason', 'createdAt', 'updatedAt'] as const;
  return toWire(endpoint, 'id', 'url', 'description', 'events', ...state);
}

export function toEndpointWithSecretDto({
  endpoint,
  secret,
}: EndpointWithSecret): WebhookEndpointWithSecretDto {
  return Object.assign(toWebhookEndpointDto(endpoint), { secret });
}

export function toWebhookDeliveryDto(delivery: WebhookDelivery): WebhookDeliveryDto {
  const times = ['createdAt', 'nextAttemptAt', 'lastAttemptAt'] as const;
  const last = ['lastResponseStatus', 'lastError', 'lastDurationMs'] as const;
  return toWire(delivery, 'id', 'eventType', 'data', 'status', 'attempts', ...times, ...last, 'dropped');
}
