import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import { type AuthUser, CurrentUser } from '../auth/auth.decorators.js';
import {
  CreateWebhookEndpointDto,
  SearchWebhookDeliveriesQueryDto,
  toWebhookDeliveryDto,
  toWebhookDeliveryPageDto,
  toWebhookEndpointDto,
  toWebhookEndpointWithSecretDto,
  UpdateWebhookEndpointDto,
  type WebhookDeliveryDto,
  WebhookDeliveryIdDto,
  type WebhookDeliveryPageDto,
  type WebhookEndpointDto,
  WebhookEndpointIdDto,
  type WebhookEndpointWithSecretDto,
} from './webhook-endpoints.dto.js';
import {
  CreateWebhookEndpointOperation,
  DeleteWebhookEndpointOperation,
  GetWebhookEndpointOperation,
  ListWebhookEndpointsOperation,
  RedeliverOperation,
  RotateWebhookSecretOperation,
  SearchWebhookDeliveriesOperation,
  TestWebhookEndpointOperation,
  UpdateWebhookEndpointOperation,
} from './webhook-endpoints.openapi.js';
import { WebhookEndpointsService } from './webhook-endpoints.service.js';

@ApiTags('Webhook endpoints')
@ApiSecurity('APIKeyHeader')
@Controller('api/v1/webhook-endpoints')
export class WebhookEndpointsController {
  constructor(private readonly endpoints: WebhookEndpointsService) {}

  @Post()
  @CreateWebhookEndpointOperation()
  async create(
    @CurrentUser() { id: userId }: AuthUser,
    @Body() body: CreateWebhookEndpointDto,
  ): Promise<WebhookEndpointWithSecretDto> {
    return toWebhookEndpointWithSecretDto(await this.endpoints.create(userId, body));
  }

  @Get()
  @ListWebhookEndpointsOperation()
  async list(@CurrentUser() { id: userId }: AuthUser): Promise<WebhookEndpointDto[]> {
    return (await this.endpoints.list(userId)).map(toWebhookEndpointDto);
  }

  @Get(':id')
  @GetWebhookEndpointOperation()
  async get(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id }: WebhookEndpointIdDto,
  ): Promise<WebhookEndpointDto> {
    return toWebhookEndpointDto(await this.endpoints.get(userId, id));
  }

  @Patch(':id')
  @UpdateWebhookEndpointOperation()
  async update(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id }: WebhookEndpointIdDto,
    @Body() body: UpdateWebhookEndpointDto,
  ): Promise<WebhookEndpointDto> {
    return toWebhookEndpointDto(await this.endpoints.change(userId, id, body));
  }

  @Delete(':id')
  @HttpCode(204)
  @DeleteWebhookEndpointOperation()
  async remove(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id }: WebhookEndpointIdDto,
  ): Promise<void> {
    await this.endpoints.remove(userId, id);
  }

  @Post(':id/rotate-secret')
  @HttpCode(200)
  @RotateWebhookSecretOperation()
  async rotateSecret(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id }: WebhookEndpointIdDto,
  ): Promise<WebhookEndpointWithSecretDto> {
    return toWebhookEndpointWithSecretDto(await this.endpoints.rotateSecret(userId, id));
  }

  @Post(':id/test')
  @HttpCode(200)
  @TestWebhookEndpointOperation()
  async test(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id }: WebhookEndpointIdDto,
  ): Promise<WebhookDeliveryDto> {
    return toWebhookDeliveryDto(await this.endpoints.test(userId, id));
  }

  @Get(':id/deliveries')
  @SearchWebhookDeliveriesOperation()
  async searchDeliveries(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id }: WebhookEndpointIdDto,
    @Query() { status, page_id: pageId, limit = 50 }: SearchWebhookDeliveriesQueryDto,
  ): Promise<WebhookDeliveryPageDto> {
    return toWebhookDeliveryPageDto(
      await this.endpoints.searchDeliveries(userId, id, {
        limit,
        ...(status !== undefined && { status }),
        ...(pageId !== undefined && { pageId }),
      }),
    );
  }

  @Post(':id/deliveries/:delivery_id/redeliver')
  @HttpCode(202)
  @RedeliverOperation()
  async redeliver(
    @CurrentUser() { id: userId }: AuthUser,
    @Param() { id, delivery_id: deliveryId }: WebhookDeliveryIdDto,
  ): Promise<WebhookDeliveryDto> {
    return toWebhookDeliveryDto(await this.endpoints.redeliver(userId, id, deliveryId));
  }
}
