import { ApiProperty, getSchemaPath, type OpenAPIObject } from '@nestjs/swagger';
import type { DtoClass } from '../validation/field.js';
import { Time } from './responses.js';

/** A summary, and the class of the member `data`. */
export type SentWebhook = readonly [summary: string, data: DtoClass];

export class WebhookBodyDto {
  @ApiProperty({ format: 'uuid', example: 'b3a0f7c2-7f0d-4a2b-9e43-2f1d0c9b8a76' }) id: string;
  @Time() timestamp: string;
}

const HEADERS = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];

/** What follows from Standard Webhooks for each type of event. */
export function webhookItems(
  sent: Readonly<Record<string, SentWebhook>>,
): NonNullable<OpenAPIObject['webhooks']> {
  return Object.fromEntries(
    Object.entries(sent).map(([type, [summary, data]]) => [
      type,
      {
        post: {
          operationId: `webhook_${type.replaceAll('.', '_')}`,
          summary,
          // OpenAPI Generator writes the class of a tag anew for webhooks, over that of its routes.
          tags: ['Webhook events'],
          parameters: HEADERS.map((name) => ({
            name,
            in: 'header' as const,
            required: true,
            schema: { type: 'string' },
          })),
          requestBody: {
            required: true,
            content: { 'application/json': { schema: bodyOf(type, data) } },
          },
          responses: {
            '2XX': { description: 'Taken' },
            410: { description: 'Not wanted any more: the endpoint is disabled' },
            default: { description: 'Sent again later' },
          },
        },
      },
    ]),
  );
}

function bodyOf(type: string, data: DtoClass): { allOf: object[] } {
  return {
    allOf: [
      { $ref: getSchemaPath(WebhookBodyDto) },
      {
        type: 'object',
        properties: { type: { type: 'string', enum: [type] }, data: { $ref: getSchemaPath(data) } },
        required: ['type', 'data'],
      },
    ],
  };
}
