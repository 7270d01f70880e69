import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { UserId } from '../auth/auth.decorators.js';
import { tooMany, unknownId } from '../common/errors/domain-error.js';
import { ApiRoute, badInput, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { toPageDto } from '@slipway/api/pagination/page.dto.js';
import { ENDPOINT, MAX_ENDPOINTS, WebhookEndpointRepository } from './webhook-endpoint.repository.js';
import {
  CreateWebhookEndpointDto,
  SearchWebhookDeliveriesQueryDto,
  toWebhookDeliveryDto,
  toWebhookEndpointDto,
  toEndpointWithSecretDto,
  UpdateWebhookEndpointDto,
  WebhookDeliveryDto,
  WebhookDeliveryIdDto,
  WebhookDeliveryPageDto,
  WebhookEndpointDto,
  WebhookEndpointIdDto,
  WebhookEndpointWithSecretDto,
} from './webhook-endpoints.dto.js';
import { WEBHOOKS } from './webhook-event.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';

const CREATE =
  'From now on the events of your conversations are sent there with POST, signed as [Standard Webhooks]' +
  '(https://www.standardwebhooks.com) says: `webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over ' +
  '`webhook-id`, `webhook-timestamp` and the body, joined by dots. The body is `{"id","type","timestamp","data"}`. Any ' +
  'status from 200 to 299 within 10 seconds takes a delivery; otherwise it is repeated with growing pauses for about two ' +
  'days, with the same `webhook-id`. Status 410 disables the endpoint.';
const NEW_ENDPOINTS = {
  everything: { summary: 'All events', value: { url: 'https://ci.example.com/slipway' } },
  some: {
    summary: 'Some events',
    value: {
      url: 'https://chat.example.com/hooks/agents',
      description: 'Tell me when an agent needs me',
      events: ['conversation.waiting_for_confirmation', 'conversation.finished', 'conversation.error'],
    },
  },
};
const UNKNOWN = thrown(unknownId(ENDPOINT), 'Unknown endpoint, or not yours');
const TOO_MANY = thrown(tooMany(ENDPOINT, MAX_ENDPOINTS), 'As many endpoints as may be');
const TOO_MANY_TESTS = documented(429, 'A user may send 60 test deliveries a minute, four at a time.');
const BAD_URL = badInput(
  'body.url',
  'Expected an https address of a public server; WEBHOOK_HOST_ALLOWLIST may name others.',
);

@ApiTags('Webhook endpoints')
@Controller('api/v1/webhook-endpoints')
export class WebhookEndpointsController {
  constructor(
    private readonly endpoints: WebhookEndpointRepository,
    private readonly service: WebhookEndpointsService,
  ) {}

  @Post()
  @ApiRoute('create_webhook_endpoint', 'Add a webhook endpoint', {
    description: CREATE,
    status: 201,
    answer: { type: WebhookEndpointWithSecretDto, description: 'The endpoint with its secret' },
    problems: [TOO_MANY],
    examples: NEW_ENDPOINTS,
    invalid: BAD_URL,
    sends: WEBHOOKS,
  })
  async create(
    @UserId() userId: string,
    @Body() body: CreateWebhookEndpointDto,
  ): Promise<WebhookEndpointWithSecretDto> {
    return toEndpointWithSecretDto(await this.service.create(userId, body));
  }

  @Get()
  @ApiRoute('list_webhook_endpoints', 'List webhook endpoints', {
    description: 'The oldest first, without their secrets.',
    answer: { type: [WebhookEndpointDto], description: 'Your endpoints' },
  })
  async list(@UserId() userId: string): Promise<WebhookEndpointDto[]> {
    return (await this.endpoints.listOf(userId)).map(toWebhookEndpointDto);
  }

  @Get(':id')
  @ApiRoute('get_webhook_endpoint', 'Look at a webhook endpoint', {
    description: 'Its secret is not shown again.',
    answer: { type: WebhookEndpointDto, description: 'The endpoint without its secret' },
    problems: [UNKNOWN],
  })
  async get(@UserId() userId: string, @Param() { id }: WebhookEndpointIdDto): Promise<WebhookEndpointDto> {
    return toWebhookEndpointDto(await this.endpoints.getOf({ userId }, id));
  }

  @Patch(':id')
  @ApiRoute('update_webhook_endpoint', 'Change a webhook endpoint', {
    description: 'What is left out stays. Deliveries that wait are sent with the new values.',
    answer: { type: WebhookEndpointDto, description: 'The endpoint as it is now' },
    problems: [UNKNOWN],
    invalid: BAD_URL,
  })
  async update(
    @UserId() userId: string,
    @Param() { id }: WebhookEndpointIdDto,
    @Body() body: UpdateWebhookEndpointDto,
  ): Promise<WebhookEndpointDto> {
    return toWebhookEndpointDto(await this.service.change(userId, id, body));
  }

  @Delete(':id')
  @ApiRoute('delete_webhook_endpoint', 'Remove a webhook endpoint', {
    description: 'Its deliveries are removed with it; what waits is not sent.',
    status: 204,
    answer: { description: 'Removed' },
    problems: [UNKNOWN],
  })
  async remove(@UserId() userId: string, @Param() { id }: WebhookEndpointIdDto): Promise<void> {
    await this.endpoints.removeOf({ userId }, id);
  }

  @Post(':id/rotate-secret')
  @ApiRoute('rotate_webhook_secret', 'Replace the signing secret of a webhook endpoint', {
    description:
      'Everything that is sent from now on is signed with the new one, repeated attempts included, and for 24 hours with the former one, too.',
    answer: { type: WebhookEndpointWithSecretDto, description: 'The endpoint with its new secret' },
    problems: [UNKNOWN],
  })
  async rotateSecret(
    @UserId() userId: string,
    @Param() { id }: WebhookEndpointIdDto,
  ): Promise<WebhookEndpointWithSecretDto> {
    return toEndpointWithSecretDto(await this.service.rotateSecret(userId, id));
  }

  @Post(':id/test')
  @ApiRoute('test_webhook_endpoint', 'Send a test event to a webhook endpoint', {
    description:
      'One signed event of the type `test`, also to an endpoint that is disabled. The response comes after the attempt, and says what the server answered. It is not repeated. A user may send 60 a minute, four at a time.',
    answer: { type: WebhookDeliveryDto, description: 'The delivery, after its only attempt' },
    problems: [UNKNOWN, TOO_MANY_TESTS],
  })
  async test(@UserId() userId: string, @Param() { id }: WebhookEndpointIdDto): Promise<WebhookDeliveryDto> {
    return toWebhookDeliveryDto(await this.service.test(userId, id));
  }

  @Get(':id/deliveries')
  @ApiRoute('search_webhook_deliveries', 'Look through the deliveries to a webhook endpoint', {
    description:
      'The newest first. The newest 100 are kept, for seven days. One that has not arrived yet may be among those that are removed for a newer one; `dropped` of the newer one says so.',
    answer: { type: WebhookDeliveryPageDto, description: 'A page of deliveries' },
    problems: [UNKNOWN],
  })
  async searchDeliveries(
    @UserId() userId: string,
    @Param() { id }: WebhookEndpointIdDto,
    @Query() query: SearchWebhookDeliveriesQueryDto,
  ): Promise<WebhookDeliveryPageDto> {
    return toPageDto(await this.service.searchDeliveries(userId, id, query), toWebhookDeliveryDto);
  }

  @Post(':id/deliveries/:delivery_id/redeliver')
  @ApiRoute('redeliver_webhook', 'Send a delivery again', {
    description:
      'With the same `webhook-id`, whatever became of it before. A disabled endpoint gets it once it is enabled.',
    status: 202,
    answer: { type: WebhookDeliveryDto, description: 'The delivery, which waits to be sent' },
    problems: [UNKNOWN],
  })
  async redeliver(
    @UserId() userId: string,
    @Param() { id, delivery_id: deliveryId }: WebhookDeliveryIdDto,
  ): Promise<WebhookDeliveryDto> {
    return toWebhookDeliveryDto(await this.service.redeliver(userId, id, deliveryId));
  }
}
