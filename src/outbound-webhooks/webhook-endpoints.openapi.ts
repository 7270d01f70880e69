import { applyDecorators } from '@nestjs/common';
import {
  ApiAcceptedResponse,
  ApiCreatedResponse,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
} from '@nestjs/swagger';
import { ApiProblems, invalidInput } from '../common/openapi/problems.js';
import { ApiBodyExamples } from '../common/openapi/responses.js';
import {
  CreateWebhookEndpointDto,
  UpdateWebhookEndpointDto,
  WebhookDeliveryDto,
  WebhookDeliveryPageDto,
  WebhookEndpointDto,
  WebhookEndpointWithSecretDto,
} from './webhook-endpoints.dto.js';

const UNKNOWN = {
  status: 404,
  detail: 'There is no webhook endpoint with this id.',
  description: 'Unknown endpoint, or not yours',
};
const BAD_ID = invalidInput(['path', 'id'], 'uuid_parsing', 'Expected a UUID: 32 hexadecimal digits.');
const BAD_URL = invalidInput(
  ['body', 'url'],
  'value_error',
  'Expected an https address of a public server; WEBHOOK_HOST_ALLOWLIST may name others.',
);

/** Documents `POST /api/v1/webhook-endpoints`. */
export function CreateWebhookEndpointOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'create_webhook_endpoint',
      summary: 'Add a webhook endpoint',
      description:
        'From now on the events of your conversations are sent there with POST, signed as [Standard Webhooks](https://www.standardwebhooks.com) says: `webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over `webhook-id`, `webhook-timestamp` and the body, joined by dots. The body is `{"id","type","timestamp","data"}`. Any status from 200 to 299 within 10 seconds takes a delivery; otherwise it is repeated with growing pauses for about two days, with the same `webhook-id`. Status 410 disables the endpoint.',
    }),
    ApiBodyExamples(CreateWebhookEndpointDto, {
      everything: {
        summary: 'All events',
        value: { url: 'https://ci.example.com/slipway' },
      },
      some: {
        summary: 'Some events',
        value: {
          url: 'https://chat.example.com/hooks/agents',
          description: 'Tell me when an agent needs me',
          events: ['conversation.waiting_for_confirmation', 'conversation.finished', 'conversation.error'],
        },
      },
    }),
    ApiCreatedResponse({ type: WebhookEndpointWithSecretDto, description: 'The endpoint with its secret' }),
    ApiProblems(
      {
        status: 409,
        code: 'conflict',
        detail: 'A user may have 10 webhook endpoints; delete one first.',
        description: 'As many endpoints as may be',
      },
      413,
      415,
      BAD_URL,
    ),
  );
}

/** Documents `GET /api/v1/webhook-endpoints`. */
export function ListWebhookEndpointsOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'list_webhook_endpoints',
      summary: 'List webhook endpoints',
      description: 'The oldest first, without their secrets.',
    }),
    ApiOkResponse({ type: [WebhookEndpointDto], description: 'Your endpoints' }),
    ApiProblems(),
  );
}

/** Documents `GET /api/v1/webhook-endpoints/{id}`. */
export function GetWebhookEndpointOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({ operationId: 'get_webhook_endpoint', summary: 'Look at a webhook endpoint' }),
    ApiOkResponse({ type: WebhookEndpointDto, description: 'The endpoint without its secret' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}

/** Documents `PATCH /api/v1/webhook-endpoints/{id}`. */
export function UpdateWebhookEndpointOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'update_webhook_endpoint',
      summary: 'Change a webhook endpoint',
      description: 'What is left out stays. Deliveries that wait are sent with the new values.',
    }),
    ApiBodyExamples(UpdateWebhookEndpointDto, {
      disable: { summary: 'Send nothing for now', value: { enabled: false } },
      events: { summary: 'Other events', value: { events: ['pull_request.opened'] } },
    }),
    ApiOkResponse({ type: WebhookEndpointDto, description: 'The endpoint as it is now' }),
    ApiProblems(UNKNOWN, 413, 415, BAD_URL),
  );
}

/** Documents `DELETE /api/v1/webhook-endpoints/{id}`. */
export function DeleteWebhookEndpointOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'delete_webhook_endpoint',
      summary: 'Remove a webhook endpoint',
      description: 'Its deliveries are removed with it; what waits is not sent.',
    }),
    ApiNoContentResponse({ description: 'Removed' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}

/** Documents `POST /api/v1/webhook-endpoints/{id}/rotate-secret`. */
export function RotateWebhookSecretOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'rotate_webhook_secret',
      summary: 'Replace the signing secret of a webhook endpoint',
      description:
        'Everything that is sent from now on is signed with the new one, repeated attempts included.',
    }),
    ApiOkResponse({ type: WebhookEndpointWithSecretDto, description: 'The endpoint with its new secret' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}

/** Documents `POST /api/v1/webhook-endpoints/{id}/test`. */
export function TestWebhookEndpointOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'test_webhook_endpoint',
      summary: 'Send a test event to a webhook endpoint',
      description:
        'One signed event of the type `test`, also to an endpoint that is disabled. The response comes after the attempt, and says what the server answered. It is not repeated. A user may send 60 a minute, four at a time.',
    }),
    ApiOkResponse({ type: WebhookDeliveryDto, description: 'The delivery, after its only attempt' }),
    ApiProblems(
      UNKNOWN,
      {
        status: 429,
        code: 'rate_limited',
        detail: 'A user may send 60 test deliveries a minute, four at a time.',
      },
      BAD_ID,
    ),
  );
}

/** Documents `GET /api/v1/webhook-endpoints/{id}/deliveries`. */
export function SearchWebhookDeliveriesOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'search_webhook_deliveries',
      summary: 'Look through the deliveries to a webhook endpoint',
      description:
        'The newest first. The newest 100 are kept, for seven days. One that has not arrived yet may be among those that are removed for a newer one; `dropped` of the newer one says so.',
    }),
    ApiOkResponse({ type: WebhookDeliveryPageDto, description: 'A page of deliveries' }),
    ApiProblems(
      UNKNOWN,
      invalidInput(['query', 'limit'], 'less_than_equal', 'Expected a number of at most 100.'),
    ),
  );
}

/** Documents `POST /api/v1/webhook-endpoints/{id}/deliveries/{delivery_id}/redeliver`. */
export function RedeliverOperation(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiOperation({
      operationId: 'redeliver_webhook',
      summary: 'Send a delivery again',
      description:
        'With the same `webhook-id`, whatever became of it before. A disabled endpoint gets it once it is enabled.',
    }),
    ApiAcceptedResponse({ type: WebhookDeliveryDto, description: 'The delivery, which waits to be sent' }),
    ApiProblems(UNKNOWN, BAD_ID),
  );
}
