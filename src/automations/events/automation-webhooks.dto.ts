import { ApiExtraModels, ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Shown, ShownOrNull, USER_ID as ORG_ID } from '../../common/openapi/responses.js';
import { Flag } from '../../common/validation/number-fields.js';
import { Choice, Identifier, Text } from '../../common/validation/text-fields.js';
import { AT, givenMembers } from '../definitions/automation.dto.js';
import { filterProblem } from '../definitions/event-filter.js';
import { SOURCE_NAME } from '../definitions/trigger.js';
import { SIGNATURE_SCHEMES, type SignatureScheme } from './event-signature.js';
import type { AutomationWebhook } from './automation-webhook.repository.js';

const ID = 'e2d3c4b5-a697-4889-9a0b-1c2d3e4f5a6b';
const HEADER = { regex: /^[A-Za-z0-9-]{1,100}$/, expected: 'Expected the name of a header.' };
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=';
const EVENTS = '/api/automation/v1/events';
const NAME = { example: 'Octo', maxLength: 255, form: { minLength: 1 } };

class WebhookFieldsDto {
  @Text('JMESPath to the key of an event; for a source of your own.', {
    nullIsAbsent: true,
    default: 'type',
    example: 'type',
    maxLength: 500,
    rule: filterProblem,
  })
  event_key_expr?: string;

  @Text('Header with the signature; for a source of your own.', {
    nullIsAbsent: true,
    default: 'X-Signature-256',
    example: 'X-Signature-256',
    maxLength: 100,
    pattern: HEADER,
  })
  signature_header?: string;

  @Choice('How the signature is made; for a source of your own.', {
    nullIsAbsent: true,
    values: SIGNATURE_SCHEMES,
    default: 'hmac_sha256_hex',
    example: 'hmac_sha256_hex',
  })
  signature_scheme?: SignatureScheme;

  @Text('Header with the id of a delivery, by which repetitions are known; for a source of your own.', {
    nullable: true,
    example: 'X-Delivery-Id',
    maxLength: 100,
    pattern: HEADER,
  })
  event_id_header?: string | null;
}

@ApiExtraModels(WebhookFieldsDto)
@ApiSchema({ name: 'AutomationWebhookCreate' })
export class CreateWebhookDto extends WebhookFieldsDto {
  @Text('For people.', { required: true, ...NAME }) name: string;

  @Text('`github`, `gitlab`, `bitbucket`, `bitbucket_data_center`, or a name of your own.', {
    required: true,
    example: 'github',
    maxLength: 50,
    pattern: { regex: SOURCE_NAME, expected: 'Expected lower case letters, digits, - and _.' },
  })
  source: string;

  @Text('Secret that the host signs with; by default a random one, which is shown once.', {
    nullIsAbsent: true,
    secret: true,
    example: SECRET,
    maxLength: 255,
    form: { minLength: 8 },
    rule: (text) => (text.length < 8 ? 'Expected at least 8 characters.' : null),
  })
  webhook_secret?: string;
}

@ApiSchema({ name: 'AutomationWebhookUpdate' })
export class UpdateWebhookDto extends WebhookFieldsDto {
  @Text('For people.', { nullIsAbsent: true, ...NAME }) name?: string;
  @Flag('Whether its events are taken.', { nullIsAbsent: true, example: true }) enabled?: boolean;
}

export class WebhookIdDto {
  @Identifier('Id of the webhook.', { required: true, example: ID }) id: string;
}

@ApiSchema({ name: 'AutomationWebhook' })
export class WebhookDto {
  @ApiProperty({ format: 'uuid', example: ID }) id: string;
  @ApiProperty({ format: 'uuid', example: ORG_ID }) org_id: string;
  @ApiProperty({ example: 'Octo' }) name: string;
  @ApiProperty({ example: 'github' }) source: string;

  @Shown('What to enter at the host.', `https://slipway.example.com${EVENTS}/${ORG_ID}/github`, {
    format: 'uri',
  })
  webhook_url: string;

  @ApiProperty({ example: 'type' }) event_key_expr: string;
  @ApiProperty({ example: 'X-Signature-256' }) signature_header: string;
  @ApiProperty({ enum: SIGNATURE_SCHEMES, example: 'hmac_sha256_hex' }) signature_scheme: SignatureScheme;
  @ApiProperty({ type: String, nullable: true, example: null }) event_id_header: string | null;
  @ApiProperty({ example: true }) enabled: boolean;
  @ApiProperty({ example: AT }) created_at: Date;
  @ApiProperty({ example: AT }) updated_at: Date;
}

@ApiSchema({ name: 'AutomationWebhookWithSecret' })
export class NewWebhookDto extends WebhookDto {
  @ShownOrNull('Null where it was given.', SECRET) webhook_secret: string | null;
}

@ApiSchema({ name: 'AutomationWebhookList' })
export class WebhookListDto {
  @ApiProperty({ type: [WebhookDto] }) webhooks: WebhookDto[];
  @ApiProperty({ type: 'integer', example: 1 }) total: number;
}

@ApiSchema({ name: 'AutomationWebhookSecret' })
export class WebhookSecretDto {
  @Shown('Shown here and never again.', SECRET) webhook_secret: string;
}

export function toWebhookValues(given: UpdateWebhookDto): Partial<AutomationWebhook> {
  return givenMembers({
    name: given.name,
    enabled: given.enabled,
    eventKeyExpr: given.event_key_expr,
    signatureHeader: given.signature_header,
    signatureScheme: given.signature_scheme,
    eventIdHeader: given.event_id_header,
  });
}

export function toWebhookDto(webhook: AutomationWebhook, publicUrl: string): WebhookDto {
  return {
    id: webhook.id,
    org_id: webhook.orgId,
    name: webhook.name,
    source: webhook.source,
    webhook_url: `${publicUrl}${EVENTS}/${webhook.orgId}/${webhook.source}`,
    event_key_expr: webhook.eventKeyExpr,
    signature_header: webhook.signatureHeader,
    signature_scheme: webhook.signatureScheme,
    event_id_header: webhook.eventIdHeader,
    enabled: webhook.enabled,
    created_at: webhook.createdAt,
    updated_at: webhook.updatedAt,
  };
}
